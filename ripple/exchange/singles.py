"""Outputs for peers that know types 0 to 5 alone: each change of a row is a Delta of its own.

Such a peer knows neither tables nor cuts. So it is told what is there as one Set a row, and, where
a table comes once more, what is not there any more as Removes: for that the keys that it was told
are kept, of all such peers of a process at most ``single_keys_max``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ripple.core import sexp
from ripple.core.row_ops import OP, OP_FINAL, OP_REMOVE
from ripple.engine.changes.rows import Remove, Set
from ripple.exchange.wire.bin_prot import codec_for
from ripple.exchange.wire.errors import RemoteProtocolError
from ripple.exchange.wire.messages import Delta
from ripple.exchange.wire.records import delta_of
from ripple.model.schema.arrow import variant_columns
from ripple.model.schema.types import List, Opaque, Option, Record, Schema, Variant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ripple.engine.edges.edge_changes import EdgeChanges
    from ripple.exchange.edges import Edge, Stream
    from ripple.exchange.wire.codec import Codec
    from ripple.model.pipeline.plan import Plan
    from ripple.model.schema.types import Field, FieldType

_ROWS = 256  # that are Python's at once
_UNIT = b"\0"  # the key of an output that has one row


class Single:
    """An output: its schema, and how a row of it becomes a key and a value."""

    def __init__(self, edge: Edge, key: Sequence[Field], fields: Sequence[Field]) -> None:
        assert edge.output is not None
        self.edge = edge
        self.output = edge.output
        self.schema = Schema(edge.output, tuple(fields))
        self._key = tuple(key)

    def key_of(self, row: dict[str, Any]) -> bytes:
        """Return the key of a row in bin_prot: its fields, one after the other."""
        return self._keys.dumps(_record(row, self._key)) if self._key else _UNIT

    def set_of(self, row: dict[str, Any]) -> bytes:
        """Return the Set of a row. Raises LocalProtocolError for what has no encoding."""
        return self._deltas.dumps(Set(_record(row, self.schema.fields)))

    @property
    def remove(self) -> bytes:
        """The Remove of any row."""
        return self._deltas.dumps(Remove())

    @cached_property
    def _keys(self) -> Codec[Any]:
        return codec_for(Schema("key", self._key))

    @cached_property
    def _deltas(self) -> Codec[Any]:
        return delta_of(codec_for(self.schema))


def singles_of(plan: Plan, shown: Sequence[Edge]) -> dict[str, Single]:
    """Return the committed outputs of a plan by name. shown: as of ``shown_of``."""
    committed = {edge.output: edge for edge in shown if not edge.is_uncommitted}
    return {
        one.name: Single(committed[one.name], plan.fold(one.of).row_key, one.fields)
        for one in plan.outputs
    }


@dataclass(slots=True)
class Singles:
    """What all such peers of a process take together."""

    keys_max: int
    peers_max: int
    keys: int = 0
    peers: int = 0

    def enter(self) -> None:
        """Let one more in. Raises RemoteProtocolError."""
        if self.peers >= self.peers_max:
            raise RemoteProtocolError(
                f"{self.peers} peers without {'edges'!r} follow already; single_peers_max is "
                f"{self.peers_max}"
            )
        self.peers += 1

    def add(self, keys: int) -> None:
        """Note that more keys are kept. Raises RemoteProtocolError."""
        self.keys += keys
        if self.keys > self.keys_max:
            raise RemoteProtocolError(
                f"more keys than single_keys_max ({self.keys_max}) would be kept for peers without "
                "'edges': follow fewer outputs"
            )

    def leave(self, keys: int) -> None:
        """Let one go, for which so many keys were kept."""
        self.peers -= 1
        self.keys -= keys


class SinglePeer:
    """What one peer was told: the last number by output, and by stream the keys."""

    def __init__(self, singles: Singles, wanted: Sequence[Single]) -> None:
        """Let it in. Raises RemoteProtocolError where there are too many."""
        singles.enter()
        self.wanted = tuple(wanted)
        self._singles = singles
        self._of_edge = {one.edge.name: one for one in wanted}
        self._numbers: Counter[str] = Counter()
        self._told: dict[Stream, set[bytes]] = {}

    def leave(self) -> None:
        """Forget everything."""
        self._singles.leave(sum(map(len, self._told.values())))
        self._told.clear()

    @property
    def streams(self) -> list[Stream]:
        """Those of which it has rows."""
        return [stream for stream, told in self._told.items() if told]

    def deltas(self, stream: Stream, changes: EdgeChanges) -> Iterator[Delta]:
        """Yield what it is told of changes, or of a table; it may be left off anywhere.

        A row that is final is gone from the table: it is a Set and a Remove. Raises
        LocalProtocolError for what has no encoding, RemoteProtocolError for too many keys.
        """
        single = self._of_edge[stream.edge]
        told = self._told.setdefault(stream, set())
        fresh: set[bytes] = set()
        for at in range(0, changes.rows.num_rows, _ROWS):
            for row in changes.rows.slice(at, _ROWS).to_pylist():
                op, key = row[OP], single.key_of(row)
                if op != OP_REMOVE:
                    if key not in told:
                        self._singles.add(1)
                        told.add(key)
                    if changes.since is None:
                        fresh.add(key)
                    yield self._delta(single, key, single.set_of(row))
                if op in (OP_REMOVE, OP_FINAL) and key in told:
                    yield self._removed(single, told, key)
        if changes.since is None:
            for key in [key for key in told if key not in fresh]:
                yield self._removed(single, told, key)

    def _removed(self, single: Single, told: set[bytes], key: bytes) -> Delta:
        told.discard(key)
        self._singles.keys -= 1
        return self._delta(single, key, single.remove)

    def _delta(self, single: Single, key: bytes, delta: bytes) -> Delta:
        self._numbers[single.output] += 1
        return Delta(single.output, key, delta, self._numbers[single.output])


def _record(row: dict[str, Any], fields: Sequence[Field]) -> dict[str, Any]:
    """Return a row as its record's fields, those that are absent left out."""
    found = {}
    for field in fields:
        value = row[field.name]
        if value is not None:
            made = _MADE.get(type(field.type))
            found[field.name] = value if made is None else made(value, field.type)
        elif not field.optional:
            found[field.name] = None
    return found


def _value(value: Any, of: FieldType) -> Any:
    made = _MADE.get(type(of))
    return value if made is None or value is None else made(value, of)


def _variant(value: Any, of: Variant) -> Any:
    columns = variant_columns(of)
    if columns is None:
        return (value,)
    name = value[columns.fields[0].name]
    case = next(case for case in of.cases if case.name == name)
    args = value[name] if case.args else {}
    return (name, *(_value(args[str(at)], arg) for at, arg in enumerate(case.args)))


_MADE: dict[type[FieldType], Callable[[Any, Any], Any]] = {
    Opaque: lambda value, _: sexp.loads(value),
    Option: lambda value, of: _value(value, of.of),
    List: lambda value, of: [_value(one, of.of) for one in value],
    Record: lambda value, of: _record(value, of.fields),
    Variant: _variant,
}
