"""The nodes of a plan: sources, steps of rows, folds and outputs, checked. Only data.

Each names its input nodes: a union several, a join two, any other node one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ripple.core.frozen import frozen
from ripple.model.pipeline.waiting_nodes import StreamJoin, Waiting
from ripple.model.schema.checks import Checks
from ripple.model.schema.nested import OptionalRecord
from ripple.model.schema.types import Bool, Field, FieldType, Int64, Option, Schema, String
from ripple.model.window.spec import Session

if TYPE_CHECKING:
    import pyarrow as pa

    from ripple.model.expression.bound import Bound
    from ripple.model.pipeline.constant import Constant
    from ripple.model.window.spec import WindowSpec

INTERNAL_PREFIX = "ripple."  # of the engine's own columns in tables of state

DELETED = f"{INTERNAL_PREFIX}deleted"  # the mark of a deletion, where no field of the record is it

Fields: TypeAlias = tuple[Field, ...]

DELETED_FIELD = Field(DELETED, Bool(), optional=True)


@frozen
class TableSpec:
    """How the records of a source become a table: per key the one with the greatest offset.

    key: the names of the fields that identify a row. fields: of a record that is no deletion.
    deleted: the field that is true in a deletion; DELETED where a record without a value is one.
    format: of the values, "debezium" for its envelopes, "" for records as they are. truncate: the
    effect of a truncated table, "stop" or "letter": the run stops, or the record is rejected.
    """

    key: tuple[str, ...]
    fields: Fields
    deleted: str = DELETED
    format: str = ""
    truncate: str = "stop"


@frozen
class SourceSpec:
    """The source of events, or of a table's changes.

    time_field: the ``int`` field with the event time in nanoseconds, or None without event time.
    out_of_order_ns: how much older than the latest event time an event may be and still be on time.
    reject_future_ns: how far ahead of the watermark an event may be and still count, None for any.
    record: the class that the schema was derived from, or None. checks: conditions on fields for
    their record to count, fitted to the fields' types. key: the fields by which their writer
    chooses the partition, () if unknown. ordinal: orders the sources of a pipeline. idle_ns: how
    long an input is silent until a marker raises its watermark, None for ever; not in the node key,
    since results follow from the markers. table: how its records become a table, None for a stream;
    then fields that a deletion may lack are optional. optional_records: records in the record
    that are whole or not there; their values are fields.
    """

    name: str
    schema: Schema
    topic: str | None
    time_field: str | None
    out_of_order_ns: int
    record: type | None
    node_key: str
    checks: Mapping[str, Checks] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    reject_future_ns: int | None = None
    key: tuple[str, ...] = ()
    ordinal: int = field(default=0, compare=False)
    idle_ns: int | None = None
    table: TableSpec | None = None
    optional_records: tuple[OptionalRecord, ...] = ()

    @property
    def fields(self) -> Fields:
        """The fields of a record."""
        return self.schema.fields

    @property
    def fields_taken(self) -> Fields:
        """The fields of a record in an engine: with the mark of deletions, if no other is it."""
        if self.table is None or self.table.deleted != DELETED:
            return self.schema.fields
        return (*self.schema.fields, DELETED_FIELD)

    @property
    def fields_needed(self) -> Fields:
        """The fields of a record that counts and is no deletion."""
        return self.schema.fields if self.table is None else self.table.fields


@frozen
class Derive:
    """Adds fields computed from those before, all from the same input row.

    A row in which an expression fails is not passed on: an event is dead-lettered, a result row is
    absent. reads: the name of the node whose rows it takes, as in every step.
    """

    name: str
    exprs: tuple[tuple[str, Bound], ...]
    fields_in: Fields
    fields_out: Fields
    node_key: str
    reads: str


@frozen
class Versions(Derive):
    """The accepted changes of a table from a topic as a stream: rows, and deletions.

    deleted: the field that is true in a version that says that there is no row.
    """

    deleted: str


@frozen
class Filter:
    """Passes on the rows for which the condition is true: neither false nor null."""

    name: str
    condition: Bound
    fields_in: Fields
    fields_out: Fields
    node_key: str
    reads: str


@frozen
class Map:
    """Replaces each row by the result of a Python function.

    batch=False: called with one row, an instance of ``row`` (attributes are the fields), returns
    an instance of ``into``. batch=True: called with a dict of read-only NumPy arrays, one per
    field, returns such a dict for the fields of ``into``. On result rows, ``kept`` names the key
    and window fields, which are carried over past the function.
    """

    name: str
    function: Callable[[Any], Any]
    batch: bool
    row: type | None
    into: type | None
    schema: Schema
    kept: tuple[str, ...]
    fields_in: Fields
    fields_out: Fields
    node_key: str
    reads: str


# Invariant: of one record, all steps together make at most FLAT_ROWS_MAX rows.
@frozen
class FlatMap:
    """Replaces each event by the rows that a Python function returns: none, one or many.

    Called with one row, an instance of ``row``; returns an iterable of instances of ``into``. The
    rows of one record have its offset, and an index each, from 0 on.
    """

    name: str
    function: Callable[[Any], Any]
    row: type | None
    into: type | None
    schema: Schema
    fields_in: Fields
    fields_out: Fields
    node_key: str
    reads: str

    @property
    def kept(self) -> tuple[str, ...]:
        """The fields that are carried over: none."""
        return ()


# Invariant: as of a FlatMap.
@frozen
class Explode:
    """Replaces each event by a row for each item of a list or map, in order; other fields stay.

    column: the field that is a list or a map; an empty one and null make no row. into: the field
    of the item, or the fields of key and value, in its place.
    """

    name: str
    column: str
    into: tuple[str, ...]
    fields_in: Fields
    fields_out: Fields
    node_key: str
    reads: str


@frozen
class ConstantJoin:
    """Each row with a row of a constant, by its fields.

    on: the names of those fields, in the order of the constant's key. how: "inner" or "left":
    whether a row without a partner goes, or has nulls. taken: the shown fields of the constant,
    the last ones of ``fields_out``, perhaps under other names there. A null names nothing.
    """

    name: str
    constant: Constant
    on: tuple[str, ...]
    how: str
    taken: tuple[str, ...]
    fields_in: Fields
    fields_out: Fields
    node_key: str
    reads: str

    @property
    def added(self) -> Fields:
        """The added fields, in the order of ``taken``."""
        return self.fields_out[len(self.fields_in) :]


FLAT_ROWS_MAX = 10_000
SOURCES_MAX = 16

Step: TypeAlias = Derive | Filter | Map | FlatMap | Explode | ConstantJoin


@frozen
class Union:
    """The rows of several streams with the same fields, each with its identity and its place.

    reads: the names of its input nodes. Where one record comes by several of them, its rows are
    numbered anew, in this order.
    """

    name: str
    reads: tuple[str, ...]
    fields_out: Fields
    node_key: str


EventNode: TypeAlias = Step | Union | Waiting


@frozen
class FoldAggregate:
    """One named aggregate of a fold, with its inputs bound to the rows that are folded.

    The key of a table's rows follows them where it decides between equal rows. bound: the aggregate
    bound to the types of its inputs, which makes states.
    """

    name: str
    aggregate: Any
    inputs: tuple[Bound, ...]
    bound: Any


# Invariants: ``row`` begins with the fields of ``key``, then window_start_ns and window_end_ns
# exactly if there is a window, and no name is in it twice. A fold over a fold has no window and no
# ordered aggregate but those by value.
@frozen
class Fold:
    """A keyed view: per key (and window) the aggregates over its rows, then ``steps`` on that.

    reads: the name of its input node. input: the source or union of the rows, or the fold below: a
    new row is added, the replaced one removed. partition: the name of the step that chose ``key``,
    which is empty for one total over everything. partitions, via_log: how its stage is spread, if
    it begins one (:mod:`ripple.model.pipeline.stages`); no part of its results. expiry: the
    sessions of its keys, of which each shows the newest until it ends; None where keys do not end.
    """

    name: str
    input: str
    partition: str
    key: Fields
    window: WindowSpec | None
    aggregates: tuple[FoldAggregate, ...]
    steps: tuple[Step, ...]
    row: Fields
    fields_in: Fields
    node_key: str
    reads: str
    partitions: int | None = None
    via_log: bool = False
    expiry: WindowSpec | None = None

    @property
    def timing(self) -> WindowSpec | None:
        """The window or the sessions that decide on late events."""
        return self.window or self.expiry

    @property
    def future_ns(self) -> int | None:
        """How far ahead of the watermark an event may be unflagged; None where no time counts.

        One ahead by no more than the keys' lifetime is to be expected, and ends none of them early.
        """
        if self.timing is None:
            return None
        lasting = self.timing.assigner if self.window is None else None
        lasts_ns = lasting.gap_ns if isinstance(lasting, Session) else 0
        return max(self.timing.future_ns, lasts_ns)

    @property
    def fields_read(self) -> tuple[str, ...]:
        """The names of the fields of its input that it reads: of the key, then of aggregates."""
        read = [member.name for member in self.key]
        read += [name for one in self.aggregates for bound in one.inputs for name in bound.columns]
        return tuple(dict.fromkeys(read))

    @property
    def ends_with_window(self) -> bool:
        """Whether a group of rows, having their window in its key, is over when that is."""
        return any(member.name == "window_start_ns" for member in self.key)

    @property
    def identity(self) -> tuple[str, ...]:
        """The names of the fields that identify a result row."""
        window = WINDOW_FIELD_NAMES if self.window is not None else ()
        return (*(member.name for member in self.key), *window)

    @property
    def row_key(self) -> Fields:
        """The fewest fields that identify a result row: the key, and a window's start.

        A session's end may move, and its start identifies it already.
        """
        if self.window is None:
            return self.key
        return (*self.key, *(one for one in self.row if one.name == WINDOW_FIELD_NAMES[0]))


WINDOW_FIELD_NAMES = ("window_start_ns", "window_end_ns")


# Invariants: no window, aggregates or expiry; ``input`` is the fold or join on the left, ``key``
# the left key. ``pairs`` covers the right key, and its right names are in the order of that.
# ``fields_in`` are those of the rows before ``steps``: the key, the other fields of the left, then
# those of the right that no pair has, under the names that they get. With ``is_by_key`` the left
# names of ``pairs`` are the left key, in any order. With ``is_many`` the pairs cover neither key,
# and ``key`` is the left key, then the fields of the right one that are not ``hidden``, and last
# SIDES, unless all rows are pairs.
@frozen
class TableJoin(Fold):
    """A keyed view of two tables: rows of the left with the rows of the right that they match.

    reads_right: the name of its second input node. right: the fold or join of the rows there.
    pairs: of names of equal fields, of the left and of the right. how: "inner", "left", and by key
    also "right" and "full": the sides of which a row without a partner is there, with nulls.
    """

    right: str = ""
    reads_right: str = ""
    right_key: Fields = ()
    pairs: tuple[tuple[str, str], ...] = ()
    how: str = "inner"

    @property
    def is_by_key(self) -> bool:
        """Whether both sides have the same key, rather than that the left names one of the right.

        Then a row of the right has at most one of the left.
        """
        return {left for left, _ in self.pairs} == {field.name for field in self.key}

    @property
    def left_key(self) -> Fields:
        """The key of the rows on the left."""
        rest = sum(one.name not in self.hidden for one in self.right_key) if self.is_many else 0
        return self.key[: len(self.key) - rest - self.has_sides]

    @property
    def is_many(self) -> bool:
        """Whether a row of either side may have several of the other."""
        return {right for _, right in self.pairs} != {field.name for field in self.right_key}

    @property
    def has_sides(self) -> bool:
        """Whether rows without a partner stand beside pairs, told from these by their key."""
        return self.is_many and self.how != "inner"

    @property
    def hidden(self) -> set[str]:
        """The fields of the right that a row does not have, since one of the left tells them."""
        tells = not self.is_many or self.how in ("inner", "left")
        return {right for _, right in self.pairs} if tells else set()


# Invariants: no window, aggregates or expiry; ``input`` and ``reads`` are the join or scan, ``key``
# is ROW_KEY, or PAIR_KEY of an interval join, and ``fields_in`` are the fields of that node.
@frozen
class RowTable(Fold):
    """The rows of an eager join or scan, by their origins; final once the final one has them."""


# Invariants: as RowTable, but ``key`` is that of the scan.
@frozen
class LastTable(RowTable):
    """The last row of each key of an eager scan; none is final, and the scan's state has them."""


def is_join(node: object) -> bool:
    """Return whether a view is of a join, which has no stored state: its sides determine it."""
    return isinstance(node, TableJoin | RowTable)


ROW_KEY = (Field("row_input", String()), Field("row_offset", Int64()), Field("row_index", Int64()))
SIDES = Field("sides", String())
"""Which sides a row is of, in the key of a join many to many: "both", "left_only", "right_only"."""
PAIR_KEY = (
    *ROW_KEY,
    Field("right_input", String()),
    Field("right_offset", Int64()),
    Field("right_index", Int64()),
)


@frozen
class Output:
    """A sink: the rows of a fold or of a stream, under a name and perhaps a topic.

    is_stream: whether ``of`` is a stream: its rows have no key, and never change. key: of a stream,
    the fields of the record key, in systems with keys.
    """

    name: str
    of: str
    topic: str | None
    fields: Fields
    node_key: str
    is_stream: bool = False
    key: Fields = ()


NodeOf: TypeAlias = SourceSpec | EventNode | Fold | Output


class Node(NamedTuple):
    """A node of the graph, and the names of its input nodes; a source takes none."""

    of: NodeOf
    inputs: tuple[str, ...]


@frozen
class Migration:
    """Makes the state of ``fold`` from that of a fold with other code, a table of leaf state.

    Or of a scan, of which ``function`` may be None: its fields are taken over by their names.
    from_digest: 32 hexadecimal digits, the end of that node's key.
    """

    fold: str
    from_digest: str
    function: Callable[[pa.Table], pa.Table] | None


def reads_of(step: EventNode | Fold) -> tuple[str, ...]:
    """Return the names of the input nodes of a step on events, or of a fold."""
    if isinstance(step, TableJoin):
        return (step.reads, step.reads_right)
    return step.reads if isinstance(step, Union | StreamJoin) else (step.reads,)


def tables_below(fold: Fold) -> tuple[str, ...]:
    """Return the names of the inputs of a fold: of a join two, of any other one."""
    return (fold.input, fold.right) if isinstance(fold, TableJoin) else (fold.input,)


def type_of(member: Field) -> FieldType:
    """Return the type of a field's values, an ``Option`` if the field may be absent."""
    optional = member.optional and not isinstance(member.type, Option)
    return Option(member.type) if optional else member.type


def types_of(fields: Fields) -> dict[str, FieldType]:
    """Return name to type, as expressions are bound to."""
    return {member.name: type_of(member) for member in fields}
