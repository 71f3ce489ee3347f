"""How many records of a one-shot run may be rejected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ripple as rp


@rp.record(version=1)
class Trade:
    symbol: str
    size: int = rp.field(gt=0)
    at: rp.Timestamp


PIPELINE = (
    rp.Pipeline("p")
    .source("trades", Trade)
    .partition("k", key="symbol")
    .fold("f", n=rp.count())
    .sink("out")
)


def rows(good: int, bad: int) -> list[dict[str, Any]]:
    sizes = [1] * good + [-1] * bad
    return [{"symbol": "A", "size": size, "at": 1} for size in sizes]


@pytest.mark.parametrize(
    ("good", "bad", "limit", "said"),
    [
        (
            0,
            3,
            None,
            r"all 3 records were rejected \(size is not positive: 3\): the run commits nothing",
        ),
        (1, 99, None, ""),
        (0, 3, "100%", ""),
        (9, 1, 0, r"1 record was rejected, more than max_rejected=0 \(size is not"),
        (9, 1, 1, ""),
        (8, 2, "1", r"2 records were rejected, more than max_rejected=1 "),
        (9, 1, "10%", ""),
        (9, 1, "9.5%", r"1 of 10 records were rejected, more than max_rejected=9\.5% "),
        (5, 0, 0, ""),
        (0, 0, None, ""),
    ],
)
@pytest.mark.filterwarnings("ignore::ripple.LostRecordsWarning")
def test_a_run_with_too_many_writes_nothing(
    good: int, bad: int, limit: Any, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "out.csv"
    file.write_text("before\n")
    arguments: dict[str, Any] = {"source": rows(good, bad), "max_rejected": limit}
    if said:
        with pytest.raises(rp.InputError, match=said):
            rp.run(PIPELINE, sink=file, **arguments)
        assert file.read_text() == "before\n"
        with pytest.raises(rp.InputError, match=said):
            rp.collect(PIPELINE, **arguments)
    else:
        report = rp.run(PIPELINE, sink=file, **arguments)
        assert (report.applied, report.rejected.total()) == (good, bad)
        assert file.read_text() == "symbol,n\n" + (f"A,{good}\n" if good else "")


def test_a_heading_among_them_is_told(tmp_path: Path) -> None:
    file = tmp_path / "in.csv"
    file.write_text("symbol,size,at\n")
    hint = "header=True reads it as one"
    with pytest.raises(rp.InputError, match=hint):
        rp.run(PIPELINE, source=file, sink=[])
    with pytest.raises(rp.InputError, match=hint):
        rp.run(PIPELINE, source=file, sink=[], strict=True)
    with file.open("a") as more:
        more.write("A,1,1\n")
    with pytest.warns(rp.LostRecordsWarning, match=hint):
        rp.run(PIPELINE, source=file, sink=[])
    with pytest.warns(rp.LostRecordsWarning, match=hint):
        rp.collect(PIPELINE, file)
    assert rp.collect(PIPELINE, file, header=True).report.applied == 1


def test_too_many_end_a_run_at_once() -> None:
    def endless() -> Any:
        while True:
            yield from rows(1, 1)

    with pytest.raises(rp.InputError, match="more than max_rejected=10 "):
        rp.run(PIPELINE, source=endless(), sink=[], max_rejected=10)


@pytest.mark.parametrize("limit", [-1, 1.5, True, "many", "101%", "-1%"])
def test_what_is_no_limit(limit: Any) -> None:
    with pytest.raises(rp.InputError, match="max_rejected must be a number of records from 0 on"):
        rp.run(PIPELINE, source=[], sink=[], max_rejected=limit)


@rp.record
class Seen:
    who: str
    at: rp.Timestamp = rp.field(format="iso")


def test_missing_zone_is_hinted_at_in_programs_too() -> None:
    rows = [{"who": "a", "at": f"2026-01-01T00:00:00{zone}"} for zone in ("", "Z")]
    with pytest.warns(rp.LostRecordsWarning, match=r'\(without a zone\? rp.field\(format="iso"'):
        rp.collect(rp.Pipeline("p").source("seen", Seen).sink("out"), rows)
