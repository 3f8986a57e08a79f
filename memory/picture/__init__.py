"""Pictures of a plan: an SVG file for papers and talks, a page to explore it."""
