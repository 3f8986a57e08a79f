"""``python -m layrubnet`` is the same as the ``layrubnet`` command."""

import sys

from layrubnet.cli import main

sys.exit(main())
