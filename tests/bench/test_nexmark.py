"""Nexmark without its generator: the comparison of results, and refusals of the command."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import ripple as rp
from bench.nexmark.engines import OTHERS, polars_engine
from bench.nexmark.queries import QUERIES
from bench.nexmark.results import Changes, differences, table
from tests.bench.command import ROOT, bench


def test_each_query_runs() -> None:
    assert sorted(QUERIES) == sorted(f"q{number}" for number in range(24))
    for name, query in QUERIES.items():
        assert query.pipeline().plan().name == name


def test_an_engine_has_each_query_that_it_can_say() -> None:
    named = {engine.name: engine.cannot for engine in OTHERS}
    assert set(polars_engine.QUERIES) == set(QUERIES) - named["Polars"]


def test_the_page_has_each_query_and_what_differs() -> None:
    page = (ROOT / "docs/nexmark.md").read_text().partition("## Method")[0]
    rows = [line.split("|")[1:-1] for line in page.splitlines() if re.match(r"\| q\d", line)]
    listed = [name.strip() for names, *_ in rows for name in names.split(",")]
    assert sorted(listed) == sorted(QUERIES)
    for name, title, differs in ([cell.strip() for cell in row] for row in rows if len(row) == 3):
        query = QUERIES[name]
        assert title == query.title
        assert bool(differs) == bool(query.differs)


def test_a_row_that_differs_is_shown_on_both_sides_and_equal_ones_are_not() -> None:
    rows = [{"a": number, "b": f"{number}"} for number in range(9)]
    wanted = pa.Table.from_pylist(rows)
    assert differences(wanted.take([8, *range(8)]), wanted) == []
    changed = pa.Table.from_pylist([*rows[:8], {"a": 8, "b": "eight"}])
    assert differences(changed, wanted) == ["+ {'a': 8, 'b': 'eight'}", "- {'a': 8, 'b': '8'}"]
    assert differences(wanted.slice(1), wanted) == ["- {'a': 0, 'b': '0'}"]
    assert differences(pa.concat_tables([wanted, wanted]), wanted)[-1] == "+ and 4 more"
    assert differences(wanted.select(["a"]), wanted) == ["no column b"]


def test_the_last_change_of_a_key_is_its_row() -> None:
    @rp.record
    class Event:
        key: str
        size: int

    pipeline = (
        rp.Pipeline("p")
        .source("events", Event)
        .partition("by-key", key="key")
        .fold("sums", size=rp.sum("size"))
        .filter("small", rp.col("size") < 5)
        .sink("rows")
    )
    sink = Changes()
    events = [("a", 1), ("b", 1), ("a", 2), ("b", 9), ("c", 4)]
    rows = [{"key": key, "size": size} for key, size in events]
    rp.run(pipeline, source=rows, sink=sink, batch_rows=1)
    assert len(sink.batches) > 2
    found = table(sink.batches).sort_by("key").to_pylist()
    assert found == [{"key": "a", "size": 3}, {"key": "c", "size": 4}]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nexmark", "--queries", "q99"], "no query 'q99'; there are q0, q1"),
        (["nexmark", "--events", "10"], "--events takes 1,000 or more, not 10"),
        (["csv", "--against", "HEAD", "--events", "5000"], "go with nexmark"),
        (["ring", "--queries", "q1"], "go with nexmark"),
        (["spark", "--rows", "5000"], "--rows goes with spark_files and spark_scale"),
        (["spark_scale", "--rows", "10"], "--rows takes 1,000 or more, not 10"),
    ],
)
def test_a_wrong_argument_is_one_line_before_anything_starts(
    arguments: list[str], said: str
) -> None:
    ended = bench(*arguments)
    assert ended.returncode == 2
    assert said in ended.stderr.splitlines()[-1]
