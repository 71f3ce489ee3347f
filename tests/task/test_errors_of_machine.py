"""Machine errors in a user's function end the run, with one line."""

from __future__ import annotations

import errno
from typing import Any

import pytest

import ripple as rp
from ripple.model.pipeline.builder import Pipeline


@rp.record(version=1)
class Row:
    key: str
    n: int
    at: rp.Timestamp


@rp.record(version=1)
class Count:
    n: int = 0


ROWS = [{"key": "a", "n": n, "at": n} for n in range(3)]
OF_MACHINE = [MemoryError("none left"), OSError(errno.ENOSPC, "no space"), SystemExit(3)]


def pipelines(error: BaseException) -> dict[str, Pipeline]:
    def one(row: Any) -> Any:
        if row.n == 1:
            raise error
        return row

    def several(row: Any) -> list[Any]:
        return [one(row)]

    def whole(columns: Any) -> Any:
        raise error

    def step(state: Any, row: Any) -> Any:
        return Count(state.n + 1), one(row)

    def add(state: int, n: int) -> int:
        if n == 1:
            raise error
        return state + n

    def empty() -> int:
        raise error

    rows = Pipeline("p").source("rows", Row)
    scanned = {"key": "key", "state": Count, "step": step, "into": Row}

    def shown(state: int) -> int:
        raise error

    total = rp.custom("n", init=lambda: 0, add=add, result=lambda state: state, type=int)
    result = rp.custom("n", init=lambda: 0, add=lambda state, n: n, result=shown, type=int)
    begun = rp.custom("n", init=empty, add=add, result=lambda state: state, type=int)
    return {
        "map": rows.map("m", one, into=Row).sink("out"),
        "flat_map": rows.flat_map("m", several, into=Row).sink("out"),
        "batch": rows.map("m", whole, into=Row, batch=True).sink("out"),
        "scan": rows.scan("m", **scanned, settled=True).sink("out"),
        "eager": rows.scan("m", **scanned).sink("out"),
        "fold": rows.partition("by", key="key").fold("f", total=total).sink("out"),
        "init": rows.partition("by", key="key").fold("f", total=begun).sink("out"),
        "result": rows.partition("by", key="key").fold("f", total=result).sink("out"),
        "results": rows.partition("by", key=("key", "n", "at"))
        .fold("f", count=rp.count())
        .map("m", one, into=Row)
        .sink("out"),
    }


@pytest.mark.parametrize("error", OF_MACHINE, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("shape", pipelines(MemoryError()))
def test_a_run_ends_and_nothing_is_rejected(shape: str, error: BaseException) -> None:
    with pytest.raises(rp.RippleError, match=f"raised {type(error).__name__}") as caught:
        rp.collect(pipelines(error)[shape], ROWS)
    assert "\n" not in str(caught.value)


def test_a_recursion_that_is_too_deep_is_of_its_record() -> None:
    with pytest.warns(rp.LostRecordsWarning, match="1 rejected .m: RecursionError: too deep"):
        rp.run(pipelines(RecursionError("too deep"))["map"], source=ROWS, sink=[])


def test_results_that_are_absent_are_told() -> None:
    told = "pipeline 'p': 1 row of 'f' without a result .first: f: 'total': .* raised RecursionErr"
    with pytest.warns(rp.LostRecordsWarning, match=told):
        assert rp.collect(pipelines(RecursionError("deep"))["result"], ROWS).rows() == []
