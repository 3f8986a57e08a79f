"""Where every buffer of a program lies: planning, placement, reports."""
