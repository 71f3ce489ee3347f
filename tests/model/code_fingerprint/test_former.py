"""The form that earlier checkpoints know: what it was, and that their state is found by it."""

from __future__ import annotations

import functools
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import ripple.model.aggregate as ra
from ripple.engine.machine import Engine, Snapshot
from ripple.engine.migration.adaptation import decide
from ripple.engine.migration.evolution import Verdict, compare
from ripple.model.code_fingerprint.former import former
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.plan import Plan
from tests.engine.machine.trades import Row, Trade
from tests.engine.migration.versions import fed, shown
from tests.plan_example import mapped, to_quote

EVENTS: list[Row] = [("ABC"[at % 3], 1.5 * at, 1 + at % 4, 7 * at, "XNAS") for at in range(40)]


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the form is of Python 3.11")
def test_former_form_is_pinned() -> None:
    plan = mapped()
    assert plan.former_topology_hash == "05b957156e27ba8e40eb24ad22d39ef0"
    assert "trades/p/f#47a1faddaa683cdf31192eec089f64e2" in plan.former_keys


def test_functions_counted_by_what_they_do_themselves() -> None:
    def scaled(factor: float) -> Any:
        return lambda row: row.price * factor

    def other(row: Any) -> Any:
        return row.price + 1

    texts = [
        str(former(function))
        for function in (
            scaled(1.0),
            scaled(2.0),
            other,
            to_quote,
            functools.partial(to_quote, 1),
            functools.partial(to_quote, 2),
            np.sqrt,
            "".join,
            ",".join,
            _Model().predict,
        )
    ]
    assert len(set(texts)) == len(texts)
    assert former(scaled(1.0)) == former(scaled(1.0))
    assert not any(" at 0x" in text for text in texts)


class _Model:
    def predict(self, row: Any) -> Any:
        return row


LIMIT = 3


def capped(row: Any) -> Trade:
    return replace(row, size=min(row.size, LIMIT))


def line(name: str = "f", function: Any = capped) -> Pipeline:
    start = Pipeline("test").source("trades", Trade, out_of_order=10)
    start = start.map("capped", function, into=Trade).partition("p", key="symbol")
    return start.fold(name, n=ra.count(), v=ra.sum("size"), c=counting())


def counting() -> ra.Aggregate:
    return ra.custom(init=int, add=lambda s: s + 1, result=lambda s: s, type=int, name="mine")


def as_of_before(plan: Plan, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot as it was written when code was not followed."""
    keys = {now: was for was, now in plan.former_keys.items()}
    return replace(
        snapshot,
        topology_hash=str(plan.former_topology_hash),
        nodes=tuple(keys[key] for key in snapshot.nodes),
        tables={keys[key]: table for key, table in snapshot.tables.items()},
        notes={name: text for name, text in snapshot.notes.items() if name in ("python", "source")},
    )


def old_snapshot(pipeline: Pipeline) -> Snapshot:
    plan = pipeline.sink("o").plan()
    assert plan.former_topology_hash != plan.topology_hash
    return as_of_before(plan, fed(Engine(plan), EVENTS[:20]).snapshot())


def test_engine_goes_on_from_a_snapshot_of_before() -> None:
    plan = line().sink("o").plan()
    engine = Engine.restore(plan, old_snapshot(line()))
    fresh = fed(Engine(plan), EVENTS)
    assert shown(fed(engine, EVENTS)) == shown(fresh)
    assert engine.digests == fresh.digests
    assert engine.snapshot().nodes == plan.node_keys
    assert engine.snapshot().topology_hash == plan.topology_hash


@pytest.mark.parametrize("name", ["f", "renamed"])
def test_state_of_before_is_kept_and_it_is_said_what_was_not_noted(name: str) -> None:
    plan = line(name).sink("o").sink("more").plan()
    restoration = decide(plan, old_snapshot(line()))
    verdicts = {node.kind: node for node in restoration.comparison.nodes}
    assert verdicts["fold"].verdict is Verdict.KEEP
    assert "did not note what functions read" in verdicts["fold"].cause
    assert "did not note what functions read" in verdicts["step"].cause
    assert verdicts["source"].cause == ""
    assert restoration.snapshot is not None
    restored = fed(Engine.restore(plan, restoration.snapshot), EVENTS)
    assert shown(restored) == shown(fed(Engine(plan), EVENTS))


def test_changed_function_does_not_get_state_of_before() -> None:
    plan = line(function=lambda row: row).sink("o").plan()
    comparison = compare(plan, old_snapshot(line()))
    assert "step 'capped' before it changed: what it does" in "".join(comparison.problems)


def test_code_that_was_refused_before_has_no_former_keys() -> None:
    def counted(row: Any, seen: Any = object()) -> Any:  # noqa: B008 - what the test is about
        def again(n: int) -> int:
            return n and again(n - 1)

        return again(row.size) and row

    plan = line(function=counted).sink("o").plan()
    assert plan.former_keys == {}
    assert plan.former_topology_hash is None
    engine = fed(Engine(plan), EVENTS[:20])
    assert Engine.restore(plan, engine.snapshot()).digests == engine.digests
