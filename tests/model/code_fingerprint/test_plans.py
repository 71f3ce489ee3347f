"""Wherever a pipeline takes code, the code is part of the keys, with all that it reads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import ripple as rp
import ripple.model.aggregate as ra
from ripple.engine.machine import Engine
from ripple.engine.migration.evolution import compare
from ripple.model.aggregate.contract import Bound
from ripple.model.aggregate.sums import Count
from ripple.model.pipeline.plan import Plan
from ripple.model.schema.types import FieldType
from tests.engine.machine.trades import Trade
from tests.model.code_fingerprint.modules import imported, written

PIPELINE = """
import ripple as rp

class Conf:
    def __init__(self, factor):
        self.factor = factor

@rp.record
class Trade:
    symbol: str
    size: int

    def double(self):
        return self.size * TWICE

ADDED, TAKEN, EMPTY, SHOWN, JOINED, SCALED, SHIFT, AFTER = 1, 1, 0, 1, 0, 1.0, 1, 0
TWICE = 2
CONF = Conf(1)

def rows(row):
    return Trade(row.symbol, row.double() + later() + SHIFT * CONF.factor)

def batch(columns):
    return {**columns, "size": columns["size"] * SCALED.__int__()}

def results(row):
    return Sized(row.symbol, row.f + AFTER)

@rp.record
class Sized:
    symbol: str
    f: int

mine = rp.custom(
    "size",
    init=lambda: EMPTY,
    add=lambda state, size: state + size * ADDED,
    remove=lambda state, size: state - size * TAKEN,
    merge=lambda one, other: one + other + JOINED,
    result=lambda state: state * SHOWN,
    type=int,
)
pipeline = (
    rp.Pipeline("test").source("trades", Trade)
    .map("rows", rows, into=Trade)
    .map("batch", batch, into=Trade, batch=True)
    .partition("p", key="symbol")
    .fold("fold", f=mine)
    .map("results", results, into=Sized)
    .sink("sink")
)

def later():
    return LATER

LATER = 5
"""
# The step from which on the keys are others, and the place that is named.
EDITS = {
    "constant of a row map": ("SHIFT, AFTER = 1, 1, 0, 1, 0, 1.0, 1", "rows", "SHIFT"),
    "attribute of an object of a row map": ("CONF = Conf(1", "rows", "CONF.factor"),
    "method of the record": ("self.size * T", "rows", "Trade.double"),
    "what a method of the record reads": ("TWICE = 2", "rows", "TWICE"),
    "constant that stands below the pipeline": ("LATER = 5", "rows", "LATER"),
    "constant of a batch map": ("SHIFT, AFTER = 1, 1, 0, 1, 0, 1.0", "batch", "SCALED"),
    "constant of init": ("SHIFT, AFTER = 1, 1, 0", "fold", "EMPTY"),
    "constant of add": ("SHIFT, AFTER = 1", "fold", "ADDED"),
    "constant of remove": ("SHIFT, AFTER = 1, 1", "fold", "TAKEN"),
    "constant of result": ("SHIFT, AFTER = 1, 1, 0, 1", "fold", "SHOWN"),
    "constant of merge": ("SHIFT, AFTER = 1, 1, 0, 1, 0", "fold", "JOINED"),
    "constant of a map of results": ("SHIFT, AFTER = 1, 1, 0, 1, 0, 1.0, 1, 0", "results", "AFTER"),
}  # fmt: skip
CHAIN = ["trades", "rows", "batch", "fold", "results"]


def edited(old: str) -> str:
    """Return the pipeline with another digit, or letter, at the end of ``old``."""
    assert PIPELINE.count(old) == 1
    new = old[:-1] + ("SHIFT" if old[-1] == "T" else str(int(old[-1]) + 7))
    return PIPELINE.replace(old, new)


def plan_of(folder: Path, text: str = PIPELINE) -> Plan:
    with imported(written(folder, {"line.py": text}), "line") as module:
        return module.pipeline.plan()  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", EDITS)
def test_edit_changes_the_keys_from_its_step_on(name: str, tmp_path: Path) -> None:
    old, step, place = EDITS[name]
    before, after = plan_of(tmp_path / "a"), plan_of(tmp_path / "b", edited(old))
    same = [one == other for one, other in zip(before.node_keys, after.node_keys, strict=True)]
    assert same[:-1] == [at < CHAIN.index(step) for at in range(len(CHAIN))]
    assert before.topology_hash != after.topology_hash
    assert not before.code["rows"].unseen
    comparison = compare(after, Engine(before).snapshot())
    (said,) = (node.cause for node in comparison.nodes if f"/{step}#" in node.key)
    assert place in said


def test_plan_of_another_folder_has_the_same_keys(tmp_path: Path) -> None:
    comments = PIPELINE.replace("\n\n", "\n\n# another line\n")
    plans = [plan_of(tmp_path / "a"), plan_of(tmp_path / "b" / "c", comments)]
    assert plans[0].node_keys == plans[1].node_keys


@dataclass(frozen=True)
class Doubled(Count):
    """An aggregate of a user's own class, whose code is in its methods."""

    factor = 2

    def _bind(self, *types: FieldType) -> Bound:
        return super()._bind(*types)


def test_class_of_an_aggregate_of_ones_own_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def key(aggregate: ra.Aggregate) -> str:
        line = rp.Pipeline("p").source("trades", Trade).partition("p", key="symbol")
        return line.fold("f", n=aggregate).sink("o").plan().folds[0].node_key

    before = key(Doubled(()))
    assert before == key(Doubled(()))
    monkeypatch.setattr(Doubled, "factor", 3)
    assert key(Doubled(())) != before
    assert key(ra.count()) == key(ra.count())


def test_plan_says_what_it_cannot_see(tmp_path: Path) -> None:
    text = PIPELINE.replace("+ SHIFT", "+ getattr(row, NAME) + np.abs(SHIFT)")
    text = f"import numpy as np\n{text}"
    plan = plan_of(tmp_path, text)
    lines = plan.describe().splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith("map rows"))
    assert lines[at + 1] == f"    known by name: numpy {np.__version__}"
    assert lines[at + 2] == (
        "    cannot see: NAME (it is not there when the plan is made), "
        "getattr (attributes by names that are computed)"
    )
    assert "cannot see" not in plan_of(tmp_path, PIPELINE).describe()


def test_another_version_of_a_library_is_remarked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(
        tmp_path, "import numpy as np\n" + PIPELINE.replace("+ SHIFT", "+ np.abs(SHIFT)")
    )
    snapshot = Engine(plan).snapshot()
    assert compare(plan, snapshot).remarks == ()
    monkeypatch.setattr(np, "__version__", "99.0")
    (remark,) = compare(plan, snapshot).remarks
    assert remark.startswith("numpy was ")
    assert "and is 99.0" in remark
    assert not compare(plan, snapshot).problems
