"""Whatever changes and whoever looks: a client that takes each update has the table as it is."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ripple.client.flight.barrage.batches import Update
from ripple.client.flight.barrage.columns import wire_array, wire_schema
from ripple.client.flight.barrage.messages import Asked
from ripple.client.flight.barrage.rows import Rows
from ripple.client.flight.barrage.rowset import RowSet
from ripple.client.flight.barrage.subscription import Subscription
from ripple.client.flight.errors import FlightError
from tests.client.flight.barrage.rows import digest, plain
from tests.client.flight.barrage.workload import LAYOUT, TABLE, Workload
from tests.examples import EXAMPLES

WIDTH = len(TABLE)


class Client:
    """Takes updates as the protocol says; a view's rows are counted 0, 1, 2."""

    def __init__(self) -> None:
        self.rows: dict[int, list[Any]] = {}

    def take(self, update: Update, *, is_view: bool) -> None:
        told = update.metadata
        for number in told.removed.numbers().tolist():
            del self.rows[number]
        added = [column.to_pylist() or [None] * len(told.added) for column in update.added]
        news = dict(zip(told.added.numbers().tolist(), zip(*added, strict=True), strict=True))
        assert is_view or not news.keys() & self.rows.keys()
        if is_view:
            self._make_room(news, len(self.rows) + len(news))
        self.rows.update({number: list(row) for number, row in news.items()})
        assert told.modified is not None
        for at, (rows, values) in enumerate(zip(told.modified, update.modified, strict=True)):
            for number, value in zip(rows.numbers().tolist(), values.to_pylist(), strict=True):
                self.rows[number][at] = value

    def _make_room(self, news: dict[int, Any], count: int) -> None:
        stay = [self.rows[number] for number in sorted(self.rows)]
        free = [number for number in range(count) if number not in news]
        self.rows = dict(zip(free, stay, strict=True))

    def seen(self, columns: list[int]) -> list[list[Any]]:
        return [[self.rows[number][at] for at in columns] for number in sorted(self.rows)]


def asked_of(random: Random) -> Asked:
    view = sorted(random.sample(range(30), random.choice([1, 3, 9])))
    columns = random.choice([None, frozenset(random.sample(range(WIDTH), 4))])
    if random.random() < 0.4:
        return Asked(b"", columns=columns)
    viewport = RowSet.of(np.array(view, np.int64))
    return Asked(b"", columns=columns, viewport=viewport, reverse=random.random() < 0.4)


def truth(rows: Rows, asked: Asked, columns: list[int]) -> list[list[Any]]:
    now = rows.version().rows
    if asked.viewport is not None:
        wanted = [n for n in asked.viewport.numbers().tolist() if n < len(now)]
        now = now[sorted(len(now) - 1 - n if asked.reverse else n for n in wanted)]
    values = [rows.values(at, now).to_pylist() for at in columns]
    return [list(row) for row in zip(*values, strict=True)]


@pytest.mark.parametrize("seed", range(EXAMPLES))
def test_each_update_leads_to_the_table_as_it_is(seed: int) -> None:
    workload, rows = Workload(seed), Rows(LAYOUT)
    random = Random(f"subscription/{seed}")
    some = [(Subscription(), Client()) for _ in range(4)]
    shared: dict[Any, Update] = {}
    for known, _ in some:
        known.ask(asked_of(random), WIDTH)
    for _ in range(40):
        for _ in range(random.choice([1, 1, 5])):
            rows.apply(*workload.step())
        shared.clear()
        table = pa.table([rows.values(at, rows.version().rows) for at in range(WIDTH)], TABLE.names)
        assert digest(plain(table)) == workload.state()
        for known, client in random.sample(some, 2):
            if random.random() < 0.1:
                again = asked_of(random)
                if (again.viewport is None) == (known.asked.viewport is None):
                    known.ask(again, WIDTH)
            update = known.news(rows, shared)
            asked = known.asked
            if update is not None:
                client.take(update, is_view=asked.viewport is not None)
            columns = sorted(asked.columns or range(WIDTH))
            assert repr(client.seen(columns)) == repr(truth(rows, asked, columns))
            assert known.news(rows, shared) is None, "the same is no news"


def test_those_who_know_the_same_are_told_the_same() -> None:
    workload, rows, shared = Workload(1), Rows(LAYOUT), {}
    rows.apply(*workload.step())
    both = [Subscription(), Subscription()]
    for known in both:
        known.ask(Asked(b""), WIDTH)
    assert both[0].news(rows, shared) is both[1].news(rows, shared)
    shared.clear()
    rows.apply(*workload.step())
    assert both[0].news(rows, shared) is both[1].news(rows, shared)


def test_impossible_subscription_is_refused() -> None:
    known = Subscription()
    with pytest.raises(FlightError, match=f"no column {WIDTH}: the table has {WIDTH}"):
        known.ask(Asked(b"", columns=frozenset([0, WIDTH])), WIDTH)
    known.ask(Asked(b""), WIDTH)
    with pytest.raises(FlightError, match="cannot change between them"):
        known.ask(Asked(b"", viewport=RowSet.of(np.arange(3))), WIDTH)


def test_a_value_that_becomes_what_it_was_is_no_news_of_another_column() -> None:
    rows, known = Rows(LAYOUT), Subscription()
    row = {
        "key": 1,
        "name": "a",
        "op": 0,
        "i64": 5,
        **{f"_cleared.{n}": False for n in TABLE.names[2:]},
    }
    rows.apply(0, pa.RecordBatch.from_pylist([row], schema=LAYOUT.deltas))
    known.ask(Asked(b""), WIDTH)
    known.news(rows, {})
    rows.apply(0, pa.RecordBatch.from_pylist([row | {"f64": -0.0}], schema=LAYOUT.deltas))
    update = known.news(rows, {})
    assert update is not None
    assert update.metadata.modified is not None
    changed = [TABLE.names[at] for at, each in enumerate(update.metadata.modified) if len(each)]
    assert changed == ["f64"]


def test_types_that_clients_do_not_know_are_told_as_some_that_they_know() -> None:
    for given, shown in (
        (pa.array([1, None], pa.uint16()), pa.array([1, None], pa.int32())),
        (pa.array([1], pa.date32()), pa.array([86_400_000], pa.date64())),
        (pa.array([7], pa.timestamp("us")), pa.array([7000], pa.timestamp("ns", "UTC"))),
        (pa.array(["1.50"]).cast(pa.decimal128(9, 2)), pa.array(["1.50"])),
        (pa.array([{"a": 1}, None]), pa.array(['{"a": 1}', None])),
        (pa.array([[[1]], None]), pa.array(["[[1]]", None])),
        (pa.array([["x", None], None, []], pa.large_list(pa.large_string())),
         pa.array([["x", None], None, []], pa.list_(pa.string()))),
    ):  # fmt: skip
        assert wire_array(given).equals(shown)


def test_names_that_no_column_can_have_there_are_told_as_some_that_it_can() -> None:
    names = ["symbol", "class", "class_", "k", "a b", "a_b", "2nd", "", "größe"]
    told = wire_schema(pa.schema([(name, pa.int64()) for name in names])).names
    assert told == ["symbol", "class__", "class_", "k_", "a_b_", "a_b", "_2nd", "__", "größe"]
