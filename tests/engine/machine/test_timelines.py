"""The timelines in the guide of joins, against the results."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import ripple as rp
from ripple.engine.machine import Engine
from ripple.model.pipeline.builder import Pipeline
from ripple.model.schema.columns import records_of

GUIDE = Path(__file__).parents[3] / "docs" / "joins.md"
SECOND = 10**9


@rp.record(version=1)
class Event:
    symbol: str
    name: str
    at: rp.Timestamp


def lines_of(first: str) -> dict[str, dict[int, str]]:
    """Return the lines of a drawing by their titles: what stands where."""
    (drawing,) = re.findall(rf"```\n(event time [^`]*\n{first} [^`]*)```", GUIDE.read_text())
    lines = {}
    for line in drawing.splitlines():
        title = re.match(r"[a-z]+( time)?", line)
        if title is not None:
            words = re.finditer(r"\S+", line[title.end() :])
            lines[title[0]] = {title.end() + word.start(): word[0] for word in words}
    return lines


def sides_of(lines: dict[str, dict[int, str]], *names: str) -> dict[str, list[str]]:
    """Return what each side has: an event's name ends with its time, below which it stands."""
    for name in names:
        for at, event in lines[name].items():
            assert lines["event time"][at] == event[1:], event
    return {name: [*lines[name].values()] for name in names}


def results(join: Pipeline, sides: dict[str, list[str]]) -> list[tuple[Any, ...]]:
    """Return the names in the rows of a join, in their order; a name ends with its event time."""
    engine = Engine(join.sink("out").plan())
    for source, names in sides.items():
        rows = [{"symbol": "A", "name": name, "at": int(name[1:]) * SECOND} for name in names]
        engine.apply(source, records_of(rows, rp.schema_of(Event).fields), len(rows))
    engine.close()
    rows = engine.stabilize().outputs["out"].to_pylist()
    return [(row["name"], row["name_right"]) for row in rows]


def sources(*names: str) -> list[Pipeline]:
    pipeline = Pipeline("p")
    return [pipeline.source(name, Event) for name in names]


@pytest.mark.parametrize(
    ("title", "ways"),
    [
        ("match", {}),
        ("strictly", {"allow_exact_matches": False}),
        ("forward", {"strategy": "forward"}),
        ("nearest", {"strategy": "nearest"}),
    ],
)
def test_as_of_joins_match_what_the_guide_draws(title: str, ways: dict[str, Any]) -> None:
    lines = lines_of("quotes")
    trades, quotes = sources("trades", "quotes")
    sides = sides_of(lines, "trades", "quotes")
    joined = trades.join_asof(
        "j", quotes, on="symbol", tolerance="5s", lateness="2s", emit="final", **ways
    )
    found = dict(results(joined, sides))

    for at, trade in lines["trades"].items():
        drawn = lines[title][at]
        assert found[trade] == (None if drawn in {"-", "(waits)"} else drawn), trade


@pytest.mark.parametrize("how", ["inner", "left", "right", "full"])
def test_interval_joins_pair_what_the_guide_draws(how: Any) -> None:
    lines = lines_of("fills")
    orders, fills = sources("orders", "fills")
    sides = sides_of(lines, "orders", "fills")
    joined = orders.join_interval(
        "j",
        fills,
        on="symbol",
        within=("-1s", "3s"),
        how=how,
        lateness="2s",
        emit="final",
    )
    text = GUIDE.read_text()
    drawn = re.findall(r"(o\d+|-) (f\d+|-)", text[text.index("\nfills ") :].partition("```")[0])
    alone: dict[str, set[tuple[str, str]]] = {
        "inner": set(),
        "left": {("o8", "-")},
        "right": {("-", "f12")},
    }
    alone["full"] = alone["left"] | alone["right"]
    pairs = {pair for pair in drawn if "-" not in pair}

    found = [tuple("-" if name is None else name for name in row) for row in results(joined, sides)]

    assert {pair for pair in drawn if "-" in pair} == alone["full"]
    assert sorted(found) == sorted(pairs | alone[how])
