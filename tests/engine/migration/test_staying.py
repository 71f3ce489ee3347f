"""Code changes between two lives of a stage's partition: nothing but names and outputs may."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import ripple.model.aggregate as ra
from ripple.engine.machine import Engine
from ripple.engine.machine.follower import Follower
from ripple.engine.migration.adaptation import ChangedPlanError, decide
from ripple.engine.snapshots.snapshot import SnapshotError
from ripple.model.expression import col
from tests.engine.migration.plans import ROWS, fed, plan_of, states


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"step": "renamed"},
        {"lower": "by_minute", "upper": "all_sums", "shown": ("by_minute", "all_sums")},
        {"shown": ("minutes",)},
        {"shown": ("minutes", "sums", "sums")},
    ],
)
def test_names_and_outputs_change_and_both_stages_go_on(change: dict[str, Any]) -> None:
    before, after = plan_of(), plan_of(**change)
    engine, follower = states(before)
    first = decide(after, engine.snapshot(), staged=True)
    later = decide(after, follower.snapshot(), staged=True)
    assert first.snapshot is not None
    assert later.snapshot is not None
    gone_on = fed(Engine.restore(after, first.snapshot), ROWS[20:], 20)
    above = Follower.restore(after, later.snapshot)
    above.follow("0", 2, gone_on.table_for(0))
    above.stabilize()

    fresh = fed(Engine(after, staged=True), ROWS)
    whole = fed(Engine(after), ROWS)
    assert gone_on.digests == fresh.digests
    assert {**gone_on.digests, **above.digests} == whole.digests
    assert gone_on.snapshot().tables == fresh.snapshot().tables
    kept = {output.name for output in before.outputs} & {output.name for output in after.outputs}
    assert kept <= {*first.kept_outputs, *later.kept_outputs}


def test_fold_that_no_output_showed_is_shown_where_no_row_is_freed() -> None:
    before, after = plan_of(windows=False, shown=("sums",)), plan_of(windows=False)
    engine, _ = states(before)
    decided = decide(after, engine.snapshot(), staged=True)
    assert decided.snapshot is not None
    gone_on = fed(Engine.restore(after, decided.snapshot), ROWS[20:], 20)
    assert gone_on.digests == fed(Engine(after, staged=True), ROWS).digests
    assert "minutes-0" not in decided.kept_outputs


@pytest.mark.parametrize(
    ("before", "change", "why"),
    [
        ({}, {"aggregate": ra.max("volume")}, "fold 'sums': its key, window or aggregates changed"),
        ({}, {"price": col("price") * 2}, "step 'derived': what it does changed"),
        ({}, {"windows": False}, "fold 'minutes': its key, window or aggregates changed"),
        ({"shown": ("sums",)}, {"shown": ("sums", "minutes")}, "which no output showed before"),
    ],
)
def test_changed_computation_is_refused_by_every_stage_that_has_it(
    before: dict[str, Any], change: dict[str, Any], why: str
) -> None:
    engine, follower = states(plan_of(**before))
    after = plan_of(**change)
    with pytest.raises(ChangedPlanError, match=why):
        decide(after, engine.snapshot(), staged=True)
    if "showed" not in why:
        with pytest.raises(ChangedPlanError, match=why):
            decide(after, follower.snapshot(), staged=True)


def test_output_that_shows_another_fold_needs_another_name() -> None:
    before = plan_of(windows=False)
    engine, _ = states(before)
    first, second = before.outputs
    key = f"{first.name}#{second.node_key.rpartition('#')[2]}"
    swapped = replace(before, outputs=(replace(first, of=second.of, node_key=key), second))
    with pytest.raises(ChangedPlanError, match="output 'minutes-0' has another topic, or shows"):
        decide(swapped, engine.snapshot(), staged=True)


@pytest.mark.parametrize("via", [None, "log"])
def test_edge_of_another_kind_is_refused(via: str | None) -> None:
    engine, follower = states(plan_of(windows=False, via="log" if via is None else None))
    after = plan_of(windows=False, via=via)
    with pytest.raises(ChangedPlanError, match="edge from fold 'minutes' to 'sums' was one of"):
        decide(after, follower.snapshot(), staged=True)
    if via is None:
        with pytest.raises(SnapshotError, match="nothing for the next stage's fold 'sums'"):
            Engine.restore(after, engine.snapshot())
