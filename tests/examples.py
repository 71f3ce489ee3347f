"""How much the tests search: as little as finds what is likely, unless more is asked for."""

from __future__ import annotations

import os

EXAMPLES = int(os.environ.get("RIPPLE_EXAMPLES", "1"))
"""``RIPPLE_EXAMPLES=20`` tries 20 times as many random examples and seeds (``make wide``)."""

SAMPLED = 4 if EXAMPLES == 1 else 1
"""Of many random examples or seeds of one property, so much fewer: a nightly run tries many."""

THINNED = 2 if EXAMPLES == 1 else 1
"""Where all of many like things are tried, every so-many-th is; all of them with more examples.

Of the crashes of ``enumerate_crashes``, three and more at each effect, every second one still
strikes every effect, in each of the ways by turns.
"""

SPARSE = 5 if EXAMPLES == 1 else 1
"""The same, where other tests strike each effect of the same writers and readers."""

SCATTERED = 97 if EXAMPLES == 1 else 11
"""The same, of the crashes of one pipeline: others strike each effect of a task, in each way."""

FEW = 2 if EXAMPLES == 1 else 3 * EXAMPLES
"""How many random examples each of many shapes has: the least one, and another."""
