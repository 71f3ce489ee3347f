"""Outputs for peers of types 0 to 5 only: each change of a row is one Delta.

Such a peer knows neither tables nor cuts. So a table is sent as one Set per row. If a table is sent
again, rows that are gone are sent as Removes; for that the keys sent to the peer are remembered,
for all such peers of a process at most ``single_keys_max``.
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

_ROWS = 256  # converted to Python at once
_UNIT = b"\0"  # the key of an output that has one row


class Single:
    """An output: its schema, and the encoding of its rows as keys and values."""

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
        """Return the Set of a row. Raises LocalProtocolError for a value without an encoding."""
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
        if not one.is_stream
    }


@dataclass(slots=True)
class Singles:
    """The common limits of all such peers of a process."""

    keys_max: int
    peers_max: int
    keys: int = 0
    peers: int = 0

    def enter(self) -> None:
        """Admit one more peer. Raises RemoteProtocolError."""
        if self.peers >= self.peers_max:
            raise RemoteProtocolError(
                f"{self.peers} peers without 'edges' are connected; single_peers_max is "
                f"{self.peers_max}"
            )
        self.peers += 1

    def add(self, keys: int) -> None:
        """Count more remembered keys. Raises RemoteProtocolError."""
        if self.keys + keys > self.keys_max:
            raise RemoteProtocolError(
                f"more keys than single_keys_max ({self.keys_max}) would be kept for peers without "
                "'edges': subscribe to fewer outputs"
            )
        self.keys += keys

    def leave(self, keys: int) -> None:
        """Remove a peer, for which so many keys were remembered."""
        self.peers -= 1
        self.keys -= keys


class SinglePeer:
    """One such peer: the last sequence number by output, and the keys sent by stream."""

    def __init__(self, singles: Singles, wanted: Sequence[Single]) -> None:
        """Admit the peer. Raises RemoteProtocolError if there are too many."""
        singles.enter()
        self.wanted = tuple(wanted)
        self._singles = singles
        self._of_edge = {one.edge.name: one for one in wanted}
        self._numbers: Counter[str] = Counter()
        self._sent: dict[Stream, set[bytes]] = {}

    def leave(self) -> None:
        """Forget everything."""
        self._singles.leave(sum(map(len, self._sent.values())))
        self._sent.clear()

    @property
    def streams(self) -> list[Stream]:
        """The streams of which it has rows."""
        return [stream for stream, sent in self._sent.items() if sent]

    def deltas(self, stream: Stream, changes: EdgeChanges) -> Iterator[Delta]:
        """Yield the deltas for changes, or for a table; the caller may stop anywhere.

        A final row leaves the table: it is a Set and a Remove. Raises LocalProtocolError for a
        value without an encoding, RemoteProtocolError for too many keys.
        """
        single = self._of_edge[stream.edge]
        sent = self._sent.setdefault(stream, set())
        fresh: set[bytes] = set()
        for at in range(0, changes.rows.num_rows, _ROWS):
            for row in changes.rows.slice(at, _ROWS).to_pylist():
                op, key = row[OP], single.key_of(row)
                if op != OP_REMOVE:
                    if key not in sent:
                        self._singles.add(1)
                        sent.add(key)
                    if changes.since is None:
                        fresh.add(key)
                    yield self._delta(single, key, single.set_of(row))
                if op in (OP_REMOVE, OP_FINAL) and key in sent:
                    yield self._removed(single, sent, key)
        if changes.since is None:
            for key in [key for key in sent if key not in fresh]:
                yield self._removed(single, sent, key)

    def _removed(self, single: Single, sent: set[bytes], key: bytes) -> Delta:
        sent.discard(key)
        self._singles.keys -= 1
        return self._delta(single, key, single.remove)

    def _delta(self, single: Single, key: bytes, delta: bytes) -> Delta:
        self._numbers[single.output] += 1
        return Delta(single.output, key, delta, self._numbers[single.output])


def _record(row: dict[str, Any], fields: Sequence[Field]) -> dict[str, Any]:
    """Return a row as its record's fields, without absent ones."""
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
