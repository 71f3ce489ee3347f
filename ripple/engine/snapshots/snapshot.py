"""The state of a partition at a cut, in memory: stored by a checkpoint, read by a restore."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.core.errors import RippleError
from ripple.core.frozen import frozen

if TYPE_CHECKING:
    from ripple.model.pipeline.waiting_nodes import Ask, Holding


class SnapshotError(RippleError):
    """A snapshot does not belong to the plan, or contradicts itself."""


def uncomputable_counter(fold: str) -> str:
    """Return the name of the count of a fold's final rows that could not be computed."""
    return f"uncomputable/{fold}"


def out_of_order_counter(fold: str) -> str:
    """Return the name of the count of a table's records with an earlier time than their row."""
    return f"out_of_order/{fold}"


HELD = "held/", "held-right/"  # by side


def held_key(node: Holding | Ask, side: int = 0) -> str:
    """Return the name of the table of rows that a node holds.

    Of a join the rows of a side; of an ask the rows, then their answers so far; of a scan the rows,
    then the states of keys.
    """
    return f"{HELD[side]}{node.node_key}"


REJECTED = "rejected/"  # and a node's digest: its count of rejected records


def source_counter(source: str, count: str) -> str:
    """Return the name of a count of one source's records, where there are several sources."""
    return f"source/{source}/{count}"


@frozen
class Snapshot:
    """All state that a partition's future depends on.

    cut: per input, the next offset to read. watermarks_ns: per input. counters: the engine's counts
    of events, of several sources also those of each, as ``source_counter`` names them, and per fold
    that has some, as ``uncomputable_counter`` names it, the count of final rows without a result;
    per table that has some, as ``out_of_order_counter`` names it, that of records out of order;
    of a plan with branches also per node, as ``REJECTED`` names it, the count of its rejected
    records. digests: per fold, (whole table, rows that were freed). tables: per
    fold, its leaf state under the fold's node key; per node that holds rows, as ``held_key`` names
    them, those. nodes: the keys of all nodes of the plan, to
    find later changes. stage: the stage of its partition, None if all stages are in it. epochs: of
    a downstream stage, the epoch of each sender; cut then has each sender's inputs, and
    watermarks_ns each sender's. ends_ns: of inputs that have ended, in a plan that
    is no chain, their watermarks before; none in snapshots of earlier releases. retained: per stage
    that follows, final rows that it has not released. notes: the caller's own. number: of this one
    among the engine's snapshots; since: that of the snapshot before the tables' changes, None if
    they hold everything.
    """

    pipeline: str
    topology_hash: str
    partition: int
    cut: Mapping[str, int]
    watermarks_ns: Mapping[str, int]
    counters: Mapping[str, int]
    digests: Mapping[str, tuple[int, int]]
    tables: Mapping[str, pa.Table]
    nodes: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    stage: int | None = None
    epochs: Mapping[str, int] = field(default_factory=dict)
    ends_ns: Mapping[str, int] = field(default_factory=dict)
    retained: Mapping[int, pa.Table] = field(default_factory=dict)
    number: int = field(default=0, compare=False)
    since: int | None = field(default=None, compare=False)

    @property
    def rejected(self) -> Counter[str] | None:
        """The count of records rejected by each node, by its digest; None if unknown."""
        counters = self.counters.items()
        found = {n.removeprefix(REJECTED): count for n, count in counters if n.startswith(REJECTED)}
        is_known = sum(found.values()) == self.counters.get("dead_lettered", 0)
        return Counter(found) if is_known else None

    @property
    def nbytes(self) -> int:
        """Bytes of the Arrow tables."""
        return sum(table.nbytes for table in self.tables.values())
