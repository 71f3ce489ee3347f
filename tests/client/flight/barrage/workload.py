"""Random changes of a table of all types, and what it is then: by other code than Barrage's."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pyarrow as pa

from ripple.client.outputs.subscription import Change, Position
from ripple.core.row_ops import OP_FINAL, OP_PATCH, OP_REMOVE, OP_SET
from ripple.engine.changes.column_table import ColumnTable
from ripple.engine.changes.layout import CLEARED, Layout
from tests.client.flight.barrage.rows import digest, plain

VALUES = {
    "i8": (pa.int8(), lambda r: r.randrange(-127, 128)),
    "i16": (pa.int16(), lambda r: r.randrange(-32767, 32768)),
    "i32": (pa.int32(), lambda r: r.randrange(-(2**31) + 1, 2**31)),
    "i64": (pa.int64(), lambda r: r.randrange(-(2**63) + 1, 2**63)),
    "f32": (pa.float32(), lambda r: r.choice([0.5, -0.0, 1e30, float("inf"), r.randrange(99) / 4])),
    "f64": (pa.float64(), lambda r: r.choice([0.1, float("-inf"), 1e300, r.random()])),
    "class": (pa.bool_(), lambda r: r.random() < 0.5),
    "text": (pa.string(), lambda r: "é" * r.randrange(4) + str(r.randrange(50))),
    "at": (pa.timestamp("ns", "UTC"), lambda r: r.randrange(2**61)),
    "day": (pa.date64(), lambda r: 86_400_000 * r.randrange(-(10**4), 10**4)),
    "time": (pa.time64("ns"), lambda r: r.randrange(86_400 * 10**9)),
    "many": (pa.list_(pa.int64()), lambda r: [r.randrange(9) for _ in range(r.randrange(4))]),
    "words": (
        pa.list_(pa.string()),
        lambda r: [str(r.randrange(9)) for _ in range(r.randrange(3))],
    ),
}
# Deephaven's client in C++ cannot read a list that is empty or null.
ITEMS: dict[str, list[Any]] = {"many": [0], "words": ["0"]}
TABLE = pa.schema(
    [
        pa.field("key", pa.int64()),
        pa.field("name", pa.string()),
        *(pa.field(name, kind) for name, (kind, _) in VALUES.items()),
    ]
)
LAYOUT = Layout(TABLE, ("key", "name"))


class Workload:
    """A table in partitions, changed at random; ``told`` takes each change."""

    def __init__(
        self, seed: int, *, partitions: int = 3, keys: int = 40, with_empty_lists: bool = False
    ) -> None:
        self.random = Random(f"barrage/{seed}")
        self.tables = [ColumnTable(LAYOUT) for _ in range(partitions)]
        self.alive: list[set[int]] = [set() for _ in range(partitions)]
        self.keys = keys
        self.is_never_null = () if with_empty_lists else tuple(ITEMS)

    def step(self) -> tuple[int, pa.RecordBatch]:
        """Change a partition; return which, and the deltas."""
        random = self.random
        partition = random.randrange(len(self.tables))
        alive = self.alive[partition]
        some = random.sample(range(self.keys), random.choice([1, 2, 5, self.keys // 2]))
        rows: list[dict[str, Any]] = []
        for key in some:
            op = random.choice([OP_SET, OP_PATCH, OP_PATCH, OP_REMOVE, OP_FINAL])
            if key not in alive:
                op = OP_SET
            (alive.discard if op in (OP_REMOVE, OP_FINAL) else alive.add)(key)
            rows.append(self._row(key, op))
        batch = pa.RecordBatch.from_pylist(rows, schema=LAYOUT.deltas)
        self.tables[partition].apply(batch)
        return partition, batch

    def begun(self) -> list[tuple[int, pa.RecordBatch]]:
        """Change each partition at least once; return what was changed."""
        found = []
        while {partition for partition, _ in found} != set(range(len(self.tables))):
            found.append(self.step())
        return found

    def state(self) -> str:
        """Return a digest of all rows."""
        return digest([row for table in self.tables for row in plain(table.rows())])

    def _row(self, key: int, op: int) -> dict[str, Any]:
        random = self.random
        row: dict[str, Any] = {"key": key, "name": f"n{key % 7}", "op": op}
        for name in VALUES:
            row[CLEARED + name] = False
            if op in (OP_SET, OP_FINAL):
                is_null = name not in self.is_never_null and random.random() < 0.2
                row[name] = None if is_null else self._made(name)
            elif op == OP_PATCH and random.random() < 0.2:
                row[CLEARED + name] = name not in self.is_never_null and random.random() < 0.3
                row[name] = None if row[CLEARED + name] else self._made(name)
        return row

    def _made(self, name: str) -> Any:
        made = VALUES[name][1](self.random)
        return made or ITEMS[name] if name in self.is_never_null else made


class Seen:
    """An output that is followed, as Barrage's feeds want it, of which a test says what changes."""

    def __init__(self, name: str, layout: Layout, partitions: int) -> None:
        self.name, self.layout, self.partitions = name, layout, partitions
        self.missing: tuple[int, ...] = tuple(range(partitions))
        self._queue: asyncio.Queue[Change] = asyncio.Queue()

    def emit(self, partition: int, rows: pa.RecordBatch) -> None:
        """Let a partition have changed."""
        position = Position(epoch=1, cut={}, watermark_ns=0)
        self._queue.put_nowait(Change(partition, "a-worker", None, position, rows))

    async def changes(self) -> list[Change]:
        """Wait for changes, and return all there are."""
        found = [await self._queue.get()]
        while not self._queue.empty():
            found.append(self._queue.get_nowait())
        heard = {change.partition for change in found}
        self.missing = tuple(n for n in self.missing if n not in heard)
        return found


class Shows:
    """Shows outputs, instead of an observer of a cluster."""

    def __init__(self, *seen: Seen) -> None:
        self._seen = {one.name: one for one in seen}

    async def known(self, timeout_s: float = 0) -> dict[str, Any]:
        return dict.fromkeys(self._seen)

    async def follow(self, output: str, timeout_s: float = 0) -> Seen:
        return self._seen[output]

    def leave(self, output: str) -> None:
        """Nothing: the test goes on."""
