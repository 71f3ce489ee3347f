"""Statistics by cause do not grow with the data."""

from __future__ import annotations

from ripple.connectors.dead_letter import DeadLetters
from ripple.core.causes import CAUSE_CHARACTERS_MAX, CAUSES_MAX, OTHERS, Causes
from ripple.model.batch import Rejected


def test_causes_that_hold_what_records_hold_are_counted_together() -> None:
    letters = DeadLetters()
    letters.write("s", (Rejected(at, None, f"cannot use {at}", b"") for at in range(20_000)))
    assert len(letters.counts) == CAUSES_MAX + 1
    assert letters.counts["cannot use 0"] == 1
    assert letters.counts[OTHERS] == 20_000 - CAUSES_MAX
    assert letters.total == 20_000


def test_long_causes_are_cut_and_counts_taken_over() -> None:
    causes = Causes(causes_max=2)
    causes.take({"x" * 9999: 3, "b": 2, "c": 4, "b ": 1})
    assert causes == {"x" * CAUSE_CHARACTERS_MAX: 3, "b": 2, OTHERS: 5}
    assert causes.add("b") == "b"
