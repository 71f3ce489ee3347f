"""Code changes between two runs: state is right afterwards, or the run is refused."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.engine import Engine
from ripple.recovery.adaptation import adapt
from ripple.recovery.evolution import compare
from tests.engine.ticks import EXAMPLES
from tests.engine.trades import Row, rows
from tests.recovery.versions import Version, edited, fed, shown


@settings(max_examples=150 * EXAMPLES)
@given(edit=edited(), events=rows, cut=st.integers(0, 60))
def test_engine_after_an_edit_equals_a_fresh_one_or_there_is_none(
    edit: tuple[Version, Version], events: list[Row], cut: int
) -> None:
    before, after = edit
    old = fed(Engine(before.plan()), events[:cut])
    snapshot = old.snapshot()
    comparison = compare(after.plan(), snapshot)
    adapted = adapt(snapshot, after.plan(), comparison)
    assert (adapted is None) == bool(comparison.problems)
    fresh = fed(Engine(after.plan()), events)
    if adapted is not None:
        assert adapted.cut == snapshot.cut
        restored = fed(Engine.restore(after.plan(), adapted), events)
        assert shown(restored) == shown(fresh)
        assert restored.digests == fresh.digests
        assert restored.counters == fresh.counters
        assert restored.snapshot().notes == fresh.snapshot().notes
        restored.check_invariants()
    for name in comparison.kept_outputs:
        prefix = fed(Engine(after.plan()), events[:cut])
        assert prefix.digests[name] == old.digests[name]
