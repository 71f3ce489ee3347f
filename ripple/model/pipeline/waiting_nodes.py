"""The nodes that wait for a watermark or an answer: they give rows later than they come."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ripple.core.frozen import frozen

if TYPE_CHECKING:
    from ripple.model.pipeline.nodes import Fields, FoldAggregate
    from ripple.model.running.functions import Running
    from ripple.model.running.order_book import OrderBook
    from ripple.model.running.position import BoundPosition
    from ripple.model.schema.types import Field, Schema


@frozen
class Finals:
    """The final rows of a windowed fold, as a stream: each enters it when its window is over.

    Their event time is the last nanosecond of the window. fold: its name. reads: its last node.
    """

    name: str
    fold: str
    lateness_ns: int
    fields_out: Fields
    node_key: str
    reads: str


@frozen
class Distinct:
    """The rows of a stream without rows that another one of their key precedes too closely.

    A row follows once it is final, ``lateness_ns`` above it by the watermark, unless one of its key
    with a smaller place is at most ``within_ns`` before it.
    """

    name: str
    key: Fields
    within_ns: int
    lateness_ns: int
    fields_out: Fields
    node_key: str
    reads: str


@frozen
class Scan:
    """Rows of a stream beside a state by key, in their order.

    A row is applied once it is final, ``lateness_ns`` above it by the watermark. ttl_ns: how long
    after its last row the state of a key lasts; None for ever. finals: the node of final rows that
    gave rows their identities, "" if there is none.
    """

    name: str
    key: Fields
    ttl_ns: int | None
    lateness_ns: int
    fields_in: Fields
    fields_out: Fields
    node_key: str
    reads: str
    finals: str


LIST_MAX = 1000  # items of a list or a map of a state


# Invariants: the fields of ``key`` are the first of ``fields_out``; ``initial`` has a value of each
# of ``state_fields``.
@frozen
class StepScan(Scan):
    """The rows that a function makes of the state and each row.

    function: called with the state, an instance of ``state``, which it may change, and a row, an
    instance of ``row``; returns an instance of ``into``, or None for no row. initial: the values of
    a new state, as columns store them. is_eager: a row is in a :class:`RowTable` from its reading
    on, and there is no stream. is_last: then, that is a :class:`LastTable`. version_of: the field
    by which rows of a key and of one time are versions of one row. timers: fields of the state that
    hold a time or None, each with the function that is called with the state at that time.
    """

    function: Callable[[Any, Any], Any]
    state: type
    state_fields: Fields
    initial: tuple[Any, ...]
    row: type | None
    into: type | None
    schema: Schema
    is_eager: bool = False
    is_last: bool = False
    version_of: Field | None = None
    timers: tuple[tuple[str, Callable[[Any, int], Any]], ...] = ()

    @property
    def kept(self) -> tuple[str, ...]:
        """The fields of the key, carried over."""
        return tuple(field.name for field in self.key)


@frozen
class PositionScan(StepScan):
    """The positions of fills, by key, in units. function: an ``rp.Position``, never called."""

    position: BoundPosition | None = None


# Invariant: ``columns`` are the last of ``fields_out``, after ``fields_in``.
@frozen
class RunningScan(Scan):
    """The rows with further fields, which follow from a row and the rows before it.

    columns: per such field its name, its function, and the field that this reads; None where it
    counts rows.
    """

    columns: tuple[tuple[str, Running, Field | None], ...]


# Invariant: ``added`` are the last of ``fields_out``, after ``fields_in``.
@frozen
class LastScan(Scan):
    """The rows with aggregates over the last rows of their key, up to each row itself.

    rows: how many. read: the fields that the aggregates read. added: their results.
    """

    rows: int
    aggregates: tuple[FoldAggregate, ...]
    read: Fields
    added: Fields


# Invariant: ``fields_out`` are the kept fields of a message, then the fields of the book.
@frozen
class BookScan(Scan):
    """The rows of an order book by key: its best levels, where they change.

    roles: the fields of a message that the book reads, by role. added: the fields that it
    makes. is_eager: a row is in a :class:`RowTable` from the reading of its message on, and
    there is no stream.
    """

    book: OrderBook
    roles: tuple[tuple[str, Field], ...]
    added: Fields
    is_eager: bool = False


@frozen
class StreamJoin:
    """The rows of two streams, the left one and the right one, joined by keys and event time.

    on: pairs of key fields, one of each side; a null equals nothing. how: "inner", "left", and near
    in time also "right" and "full": the sides of which rows without a partner are there, with
    nulls. latenesses_ns: per side how far below its watermark a row still counts. left_shown: the
    fields of the left side as the result has them; right_fields: the shown fields of the right
    side; added: their names and types in the result, after those. finals: the node of final rows
    that gave rows their identities, "" if there is none.
    deleted: of versions of a table on the right side, the field that is true where there is no row.
    """

    name: str
    left: str
    right: str
    on: tuple[tuple[Field, Field], ...]
    how: str
    latenesses_ns: tuple[int, int]
    left_fields: Fields
    left_shown: Fields
    right_fields: Fields
    added: Fields
    node_key: str
    finals: str
    deleted: Field | None

    @property
    @abstractmethod
    def span_ns(self) -> tuple[int | None, ...]:
        """How far from a row its partners are, None for any distance."""

    @property
    def reads(self) -> tuple[str, str]:
        """The names of its input nodes."""
        return self.left, self.right

    @property
    def fields_out(self) -> Fields:
        """The fields of a row of the result."""
        return *self.left_shown, *self.added

    @property
    def key(self) -> Fields:
        """The key fields that both sides call alike, by which rows that meet may be together."""
        return tuple(mine for mine, theirs in self.on if mine.name == theirs.name)

    def key_of(self, side: int) -> Fields:
        """Return the key fields of a side, 0 for the left one."""
        return tuple(pair[side] for pair in self.on)


@frozen
class AsofJoin(StreamJoin):
    """Each row of the left side with the row of the right side that counted at its time.

    strategy: "backward": the last one at its time or before; "forward": the first one then or
    after; "nearest": the backward one, unless the forward one is nearer. tolerance_ns: how far
    apart they may be, None for any span, backward. is_strict: whether a row of the very same time
    does not count. A row follows once no row on time can change its match; is_eager: it is in a
    :class:`RowTable` from its reading on, and there is no stream.
    """

    strategy: str
    tolerance_ns: int | None
    is_strict: bool
    is_eager: bool = False

    @property
    def span_ns(self) -> tuple[int | None]:
        """The tolerance."""
        return (self.tolerance_ns,)


@frozen
class IntervalJoin(StreamJoin):
    """Each row of the left side with the rows of the right side that are near to it in event time.

    A pair is there where ``lo_ns`` <= right - left <= ``hi_ns``. A left row follows once neither it
    nor a partner can come any more: with each partner, in their order, as one record that a
    ``flat_map`` makes several rows of. So does a right row without a partner, where it is shown; it
    has its own event time. is_eager: as in AsofJoin. right_finals: then, the node of final rows on
    the right, "" without.
    """

    lo_ns: int
    hi_ns: int
    is_eager: bool = False
    right_finals: str = ""

    @property
    def span_ns(self) -> tuple[int, int]:
        """The bounds."""
        return self.lo_ns, self.hi_ns

    @property
    def shows_right(self) -> bool:
        """Whether rows of the right side without a partner are there."""
        return self.how in ("right", "full")


# Invariant: the rows of its input are of records: none comes from a node that waits.
@frozen
class Ask:
    """Gives each row of a stream the fields of an answer to it.

    function: asynchronous, called with one row, an instance of ``row``; returns an instance of
    ``into``. timeout_ns: of a call. retries: of calls that fail. concurrency: how many calls run at
    a time. A row follows once it, and each row of its input before it, has an answer or a failure.
    """

    name: str
    function: Callable[[Any], Any]
    row: type | None
    into: type | None
    schema: Schema
    timeout_ns: int
    retries: int
    concurrency: int
    fields_in: Fields
    node_key: str
    reads: str

    @property
    def kept(self) -> tuple[str, ...]:
        """The fields of an answer that the function does not decide: none."""
        return ()

    @property
    def fields_out(self) -> Fields:
        """The fields of a row with its answer."""
        return (*self.fields_in, *self.schema.fields)


Holding: TypeAlias = Distinct | Scan | StreamJoin
"""Nodes that hold rows until the watermark decides."""
Waiting: TypeAlias = Finals | Holding | Ask
"""Nodes that give rows later than they come: streams begin anew with them."""


class Side(NamedTuple):
    """One input of a node that holds rows: which rows, how late they may be, and their key."""

    reads: str
    lateness_ns: int
    key: Fields


def sides_of(node: Holding) -> tuple[Side, ...]:
    """Return the inputs of a node that holds rows: of a join the left one and the right one."""
    if isinstance(node, Distinct | Scan):
        return (Side(node.reads, node.lateness_ns, node.key),)
    each = enumerate(zip(node.reads, node.latenesses_ns, strict=True))
    return tuple(Side(reads, late_ns, node.key_of(side)) for side, (reads, late_ns) in each)


def tables_of(node: Holding | Ask) -> int:
    """Return how many tables the state of a node has: a scan's are rows and states by key."""
    return 2 if isinstance(node, Scan | Ask) else len(sides_of(node))
