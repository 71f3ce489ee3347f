"""How much the tests search: as little as finds what is likely, unless more is asked for."""

from __future__ import annotations

import os

EXAMPLES = int(os.environ.get("RIPPLE_EXAMPLES", "1"))
"""``RIPPLE_EXAMPLES=20`` tries 20 times as many random examples and seeds (``make wide``)."""
