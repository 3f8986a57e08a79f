"""Where the reference values of real Caffe and the larger data sets are, if present.

They are not part of the repository: tests that read them skip where they are absent.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("LAYRUBNET_SHARED", _ROOT.parent / "shared"))
GOLDEN = SHARED / "golden" / "open"
REASON = "the shared reference values are not beside this clone (set LAYRUBNET_SHARED)"

needs_golden = pytest.mark.skipif(not (GOLDEN / "index.json").is_file(), reason=REASON)
