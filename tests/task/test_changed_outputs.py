"""After a change of code an output shows what the new code shows, whatever it showed before."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import ripple as rp
from ripple.connectors.commit_group import SinkGroup
from ripple.connectors.files.text.cut_record import Owner
from ripple.connectors.files.text.file import FileSink
from ripple.connectors.files.text.sink import TextFormat
from ripple.connectors.log.inputs import LogInputs
from ripple.connectors.log.sink import LogSink, schema_of_output, topic_for
from ripple.connectors.record_shape import RecordShape
from ripple.core.errors import OutputError
from ripple.model.batch import Batch
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.log import PartitionReader, PartitionWriter, Topic
from ripple.storage.store import MemoryStore
from ripple.task.durable_state import DurableState
from ripple.task.lifecycle import PartitionTask
from ripple.task.owned_state import Ownership
from ripple.task.spec import TaskContext, TaskSpec
from ripple.testing import SimWorld, sim_world

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ripple.model.pipeline.builder import Pipeline
    from ripple.model.pipeline.plan import Plan

S = 10**9


@rp.record(version=1)
class Order:
    k: str
    n: int
    t: rp.Timestamp


def counted() -> Pipeline:
    source = rp.Pipeline("p").source("orders", Order, out_of_order="1s")
    return source.partition("by", key="k").fold("f", n=rp.count(), s=rp.sum("n"))


def windowed(least: int) -> Plan:
    source = rp.Pipeline("p").source("orders", Order).filter("large", rp.col("n") >= least)
    windows = source.partition("by", key="k").window("w", rp.Tumbling("10s"))
    return windows.fold("f", n=rp.count()).sink("out").plan()


def shown(rows: Iterable[dict[str, Any]], key: tuple[str, ...]) -> dict[Any, Any]:
    """Return the newest row of each key: what readers have."""
    found: dict[Any, Any] = {}
    for row in rows:
        at = tuple(row[name] for name in key)
        if row["op"] == "remove":
            assert at in found, "nobody has it"
            del found[at]
        else:
            found[at] = {name: value for name, value in row.items() if name != "op"}
    return found


class World:
    """A log of orders, an output, and checkpoints, over which plans run one after the other."""

    def __init__(self, kind: str) -> None:
        self.world: SimWorld = sim_world()
        self.store = MemoryStore()
        self.kind, self.place = kind, "out"
        topic = Topic.create(self.world.disk, "orders", counted().sink("o").plan().source.schema)
        self._writer = PartitionWriter(topic, 0, self.world.clock)

    def append(self, *orders: tuple[str, int, int]) -> None:
        rows = [dict(zip(("k", "n", "t"), one, strict=True)) for one in orders]
        schema = RecordShape(self._writer.topic.schema).arrow_schema()
        self._writer.append(pa.RecordBatch.from_pylist(rows, schema))

    def _open(self, plan: Plan) -> Any:
        owner, disk = Owner(plan.name, "out"), self.world.disk
        if self.kind == "log":
            topic = topic_for(disk, self.place, schema_of_output(plan, plan.output("out")))
            return LogSink(topic, 0, self.world.clock, owner)
        columns = ["op", *(field.name for field in plan.output("out").fields)]
        return FileSink(disk, self.place, TextFormat("json", removes="mark"), owner, columns)

    def run(self, plan: Plan, **more: Any) -> dict[Any, Any]:
        """Run to the end of the log; return what the output shows then."""
        world = self.world
        shape = RecordShape(plan.source.schema, plan.source.checks)
        inputs = LogInputs(Topic.open(world.disk, "orders"), {"orders": 0}, shape, 100)
        life = PartitionTask(
            TaskSpec(plan, inputs, SinkGroup({"out": partial(self._open, plan)})),
            DurableState(Checkpoints(self.store, plan.name), world, Ownership(**more)),
            TaskContext(),
        )
        world.loop.run_until_complete(life.run())
        key = tuple(field.name for field in plan.fold(plan.output("out").of).row_key)
        return shown(self._rows(), key)

    def _rows(self) -> list[dict[str, Any]]:
        if self.kind == "file":
            data = self.world.disk.read_bytes(self.place, length_max=1 << 20)
            return [json.loads(line) for line in data.splitlines()]
        with PartitionReader(Topic.open(self.world.disk, self.place), 0) as reader:
            entries = [entry for entry in reader.read() if isinstance(entry, Batch)]
        return [row for entry in entries for row in entry.records.to_pylist()]


@pytest.fixture(params=["file", "log"])
def world(request: pytest.FixtureRequest) -> World:
    made = World(request.param)
    made.append(*[("five", 1, S)] * 5, *[("seven", 1, S)] * 7, ("one", 0, S))
    return made


CHANGES: dict[str, Callable[[], Pipeline]] = {
    "another filter": lambda: counted().filter("some", rp.col("n") % 5 != 0),
    "a filter more": lambda: (
        counted().filter("some", rp.col("n") % 7 != 0).filter("few", rp.col("n") > 1)
    ),
    "a filter less": counted,
    "what cannot be computed": lambda: counted().filter("can", 1 // (rp.col("n") - 5) < 2),
}


@pytest.mark.parametrize("change", CHANGES)
def test_rows_that_the_new_steps_do_not_show_are_gone(change: str, world: World) -> None:
    before = counted().filter("some", rp.col("n") % 7 != 0).sink("out").plan()
    after = CHANGES[change]().sink("out").plan()
    assert set(world.run(before)) == {("five",), ("one",)}
    fresh = World(world.kind)
    fresh.append(*[("five", 1, S)] * 5, *[("seven", 1, S)] * 7, ("one", 0, S))
    assert world.run(after) == fresh.run(after)
    world.append(("seven", 1, S))
    fresh.append(("seven", 1, S))
    assert world.run(after) == fresh.run(after)


def test_a_total_is_that_of_the_new_steps(world: World) -> None:
    def total(most: int) -> Plan:
        some = counted().derive("as", of=rp.col("n")).filter("few", rp.col("n") <= most)
        whole = some.partition("all", key=()).fold("total", of=rp.sum("of"))
        return whole.sink("out").plan()

    (before,) = world.run(total(9)).values()
    (after,) = world.run(total(6)).values()
    assert (before["of"], after["of"]) == (13, 6)
    assert world.run(total(0)) == {}


@pytest.mark.parametrize("is_shared", [False, True])
def test_rows_that_a_join_does_not_show_any_more_are_gone(
    is_shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def joined(how: str, least: int, *, most: str) -> Plan:
        source = rp.Pipeline("p").source("orders", Order, out_of_order="1s")
        sides = [
            source.filter(f"{name}-some", rp.col("n") >= (0 if name == most else 1))
            .partition(f"by-{name}", key="k")
            .fold(name, **{name: rp.count()})
            for name in ("mine", "theirs")
        ]
        few = sides[1].filter("few", rp.col("theirs") >= least)
        return sides[0].join("both", few, on="k", how=how).sink("out").plan()

    monkeypatch.setattr(LogSink, "is_shared", is_shared, raising=False)
    for most, how, least in (("mine", "left", 0), ("theirs", "full", 6)):
        world = World("log")
        world.append(*[("five", 1, S)] * 5, *[("seven", 1, S)] * 7, ("one", 0, S))
        fresh = World("log")
        fresh.append(*[("five", 1, S)] * 5, *[("seven", 1, S)] * 7, ("one", 0, S))
        before, after = joined(how, 0, most=most), joined("inner", least, most=most)
        assert set(world.run(before)) == {("five",), ("seven",), ("one",)}
        assert world.run(after) == fresh.run(after)


@pytest.mark.parametrize("is_shared", [False, True])
def test_pairs_that_a_join_does_not_show_any_more_are_gone(
    is_shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def joined(least: int) -> Plan:
        source = rp.Pipeline("p").source("orders", Order, out_of_order="1s")
        sides = [
            source.partition(f"by-{name}", key="k").fold(name, n=rp.count(), s=rp.max("n"))
            for name in ("mine", "theirs")
        ]
        few = sides[1].filter("few", rp.col("n") >= least)
        return sides[0].join("pairs", few, on="s", suffix="_too").sink("out").plan()

    monkeypatch.setattr(LogSink, "is_shared", is_shared, raising=False)
    made = [("five", 1, S)] * 5, [("seven", 1, S)] * 7, ("one", 0, S)
    world, fresh = World("log"), World("log")
    for one in (world, fresh):
        one.append(*made[0], *made[1], made[2])
    both = {(one, other) for one in ("five", "seven") for other in ("five", "seven")}
    assert set(world.run(joined(0))) == both | {("one", "one")}
    after = world.run(joined(6))
    assert set(after) == {("five", "seven"), ("seven", "seven")}
    assert after == fresh.run(joined(6))


def test_other_partitions_keep_their_rows_of_a_fold_over_rows_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def joined(most: int) -> Plan:
        orders = rp.Pipeline("p").source("orders", Order, out_of_order="1s")
        rows = orders.join_asof("near", orders, on="k", tolerance="1s", emit="eager")
        groups = rows.partition("by", key="k").fold("f", n=rp.count())
        return groups.filter("few", rp.col("n") <= most).sink("out").plan()

    def of_all_parts(sink: LogSink, key: Any) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"k": ["five", "seven", "elsewhere"], "op": ["set"] * 3})

    monkeypatch.setattr(LogSink, "is_shared", True, raising=False)
    monkeypatch.setattr(LogSink, "shown_keys", of_all_parts, raising=False)
    world = World("log")
    world.append(*[("five", 1, S)] * 5, *[("seven", 1, S)] * 7)
    assert set(world.run(joined(9))) == {("five",), ("seven",)}
    assert set(world.run(joined(6))) == {("five",)}  # "elsewhere" is not taken back


def test_keys_that_a_migration_leaves_out_are_gone(world: World) -> None:
    before = counted().sink("out").plan()
    world.run(before)

    def fewer(old: pa.Table) -> pa.Table:
        return old.filter(pc.equal(old["k"], "five"))

    source = rp.Pipeline("p").source("orders", Order, out_of_order="1s")
    made = source.partition("by", key="k").fold("f", n=rp.count(), s=rp.max("n"))
    of = before.fold("f").node_key

    def as_max(old: pa.Table) -> pa.Table:
        layout = rp_layout(made.sink("out").plan())
        rows = fewer(old)
        columns = [
            rows[name] if name in rows.column_names else pa.array([1] * len(rows), kind)
            for name, kind in layout.items()
        ]
        return pa.table(dict(zip(layout, columns, strict=True)))

    after = made.migrate("f", as_max, from_digest=of).sink("out").plan()
    assert world.run(after) == {("five",): {"k": "five", "n": 5, "s": 1}}


def rp_layout(plan: Plan) -> dict[str, pa.DataType]:
    """Return the columns of a fold's state."""
    from ripple.engine.machine import Engine

    schema = Engine(plan).snapshot().tables[plan.fold("f").node_key].schema
    return dict(zip(schema.names, schema.types, strict=True))


def test_new_output_begins_with_the_whole_of_migrated_state(world: World) -> None:
    before = counted().sink("out").plan()
    world.run(before)
    world.append(("five", 1, 2 * S))

    def renamed(old: pa.Table) -> pa.Table:
        return old.rename_columns([name.replace("n.", "count.") for name in old.column_names])

    source = rp.Pipeline("p").source("orders", Order, out_of_order="1s")
    made = source.partition("by", key="k").fold("f", count=rp.count(), s=rp.sum("n"))
    after = made.migrate("f", renamed, from_digest=before.fold("f").node_key).sink("out").plan()
    with pytest.raises(OutputError, match="name another"):
        world.run(after)
    world.place = "other"
    found = world.run(after)
    assert {key: row["count"] for (key,), row in found.items()} == {"five": 6, "seven": 7, "one": 1}


def test_rebuilt_windows_show_what_the_new_code_shows_also_where_they_are_over(
    world: World,
) -> None:
    world.append(("old", 1, S), ("five", 1, 100 * S), ("new", 1, 200 * S))
    world.run(windowed(0))
    fresh = World(world.kind)
    fresh.append(*[("five", 1, S)] * 5, *[("seven", 1, S)] * 7, ("one", 0, S))
    fresh.append(("old", 1, S), ("five", 1, 100 * S), ("new", 1, 200 * S))
    assert world.run(windowed(1), rebuild=["f"]) == fresh.run(windowed(1))
