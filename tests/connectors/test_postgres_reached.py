"""What the parts of an output in PostgreSQL have reached together."""

from __future__ import annotations

from itertools import permutations

from ripple.connectors.contract import Commit
from ripple.connectors.postgres.sink_opening import together


def test_an_input_that_several_parts_have_read_is_reached_by_the_slowest() -> None:
    """Partitions of a later stage read the same senders."""
    parts = [
        Commit({"0/trades/0": 7, "1/trades/1": 2}, "a"),
        Commit({"0/trades/0": 3, "1/trades/1": 9}, "b"),
        Commit({"0/trades/0": 5, "1/trades/1": 4}, "c"),
    ]
    for found in permutations(parts):
        assert together(found) == Commit({"0/trades/0": 3, "1/trades/1": 2}, "")


def test_parts_with_inputs_of_their_own_reach_all_of_them() -> None:
    parts = [Commit({"trades/0": 7}, "a"), Commit({"trades/1": 2}, "b")]
    assert together(parts) == Commit({"trades/0": 7, "trades/1": 2}, "")
    assert together(parts[:1]) == parts[0]
    assert together([]) is None
