"""Deltas of one schema's records, as the Delta message carries them.

A Set holds the whole record in bin_prot. The values inside a Patch are S-expressions, because
the original's patch does not know the schema: ours turn into them and back by the schema's types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.delta import text
from ripple.delta.rows import FieldSet, MapRemove, MapSet, Patch, PatchOp
from ripple.errors import DeltaError
from ripple.wire.bin_prot import codec_for
from ripple.wire.errors import LocalProtocolError, RemoteProtocolError
from ripple.wire.records import delta_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.delta.rows import Delta
    from ripple.schema.types import Schema
    from ripple.wire.codec import Buffer


class DeltaCodec:
    """Encodes deltas of the records that ``schema`` describes; ``cls`` as in ``codec_for``."""

    def __init__(
        self,
        schema: Schema,
        cls: type[Any] = dict,
        refs: Mapping[str, Schema] | None = None,
    ) -> None:
        self._schema = schema
        self._kinds = {field.name: field.type for field in schema.fields}
        self._codec = delta_of(codec_for(schema, cls, refs))

    def dumps(self, delta: Delta[Any]) -> bytes:
        """Encode a delta; raises :class:`LocalProtocolError` if it does not fit the schema."""
        if isinstance(delta, Patch):
            delta = Patch(tuple(self._as_text(op) for op in delta.ops))
        return self._codec.dumps(delta)

    def loads(self, data: Buffer) -> Delta[Any]:
        """Decode a delta; raises :class:`RemoteProtocolError` if it does not fit the schema."""
        delta = self._codec.loads(data)
        if not isinstance(delta, Patch):
            return delta
        try:
            return text.of_sexp(text.to_sexp(delta), self._schema)
        except DeltaError as error:
            raise RemoteProtocolError(f"{self._schema.name}: {error}") from None

    def _as_text(self, op: PatchOp) -> PatchOp:
        try:
            match op:
                case FieldSet(name, value):
                    if name not in self._kinds:
                        raise LocalProtocolError(f"{self._schema.name} has no field {name!r}")
                    return FieldSet(name, text.value_to_sexp(value, self._kinds[name]))
                case MapSet(key, value):
                    return MapSet(text.value_to_sexp(key), text.value_to_sexp(value))
                case MapRemove(key):
                    return MapRemove(text.value_to_sexp(key))
                case _:
                    return op
        except DeltaError as error:
            raise LocalProtocolError(f"{self._schema.name}: {error}") from None
