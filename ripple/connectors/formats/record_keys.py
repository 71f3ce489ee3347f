"""Record keys as the fields of a table's key."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ripple.model.schema.logical.columns import text_of_number
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.types import Bool, Date, Int, Logical, LogicalText, String

if TYPE_CHECKING:
    from ripple.model.schema.types import Field, FieldType

KeyForm = Literal["bytes", "json", "avro"]
KEY_FORMS: tuple[KeyForm, ...] = ("bytes", "json", "avro")
_INTEGER_BYTES = (8, 4)  # of Kafka's LongSerializer and IntegerSerializer
_LENGTH_BYTES = 4


class RecordKeys:
    """The form of record keys.

    "bytes": Kafka's own serializers, of several fields as ``ripple.model.keys.partitioner`` joins
    them. "json": a JSON object of the fields, in the envelope of Kafka Connect or without it, or
    the value of the only field. "avro": the same as an Avro record of a registry's schema.
    """

    def __init__(
        self,
        members: Sequence[Field],
        names: Sequence[str],
        form: KeyForm,
        avro: Callable[[bytes], Any] | None = None,
    ) -> None:
        """members: the fields. names: theirs, in the order of the key. avro: reads Avro."""
        types = {member.name: member.type for member in members}
        self._types = {name: types[name] for name in names}
        self._form = form
        self._avro = avro

    def fields_of(self, key: bytes) -> dict[str, Any]:
        """Return the fields of a record key. Raises ValueError, with a reason for people."""
        values = self._of_bytes(key) if self._form == "bytes" else self._of_object(key)
        for name, value in values.items():
            if not _fits(value, self._types[name]):
                raise ValueError(f"the record key has no {_word(self._types[name])} as {name}")
            if isinstance(self._types[name], Date) and isinstance(value, int):
                values[name] = text_of_number(value, Date())  # the days of Kafka Connect
        return values

    def _object(self, key: bytes) -> Any:
        if self._avro is None:
            try:
                return payload(json.loads(key))
            except (ValueError, RecursionError):
                raise ValueError("the record key is not JSON") from None
        try:
            return self._avro(key)
        except ValueError as error:
            raise ValueError(f"the record key: {error}") from None

    def _of_object(self, key: bytes) -> dict[str, Any]:
        found = self._object(key)
        if not isinstance(found, dict) and len(self._types) == 1:
            return dict.fromkeys(self._types, found)
        if not isinstance(found, dict):
            kind = "JSON object" if self._avro is None else "Avro record"
            raise ValueError(f"the record key is no {kind} of {', '.join(self._types)}")
        for name in self._types:
            if name not in found:
                raise ValueError(f"the record key has no field {name}")
        if more := found.keys() - self._types:
            names = ", ".join(sorted(more))
            raise ValueError(f"the record key has other fields than key=: {names:.200}")
        return {name: found[name] for name in self._types}

    def _of_bytes(self, key: bytes) -> dict[str, Any]:
        parts = [key] if len(self._types) == 1 else _parts(key, len(self._types))
        return {
            name: _value(part, of)
            for part, (name, of) in zip(parts, self._types.items(), strict=True)
        }


def payload(found: Any) -> Any:
    """Return the content of Kafka Connect's wrapper with a schema, or a value without one."""
    if isinstance(found, dict) and found.keys() == {"schema", "payload"}:
        return found["payload"]
    return found


def _parts(key: bytes, count: int) -> list[bytes]:
    """Return the parts of a key of several fields, each after its length."""
    parts, at = [], 0
    while at + _LENGTH_BYTES <= len(key):
        start = at + _LENGTH_BYTES
        at = start + int.from_bytes(key[at:start], "big")
        parts.append(key[start:at])
    if at != len(key) or len(parts) != count:
        raise ValueError(f"the record key is not {count} values, each after its length")
    return parts


def _value(part: bytes, of: FieldType) -> Any:
    """Return a value of one of Kafka's serializers, None for other bytes.

    Of a logical type it is the text; its bytes are those of the value as columns store it.
    """
    if isinstance(of, Logical):
        stored = _value(part, String() if isinstance(of, LogicalText) else Int())
        try:
            return None if stored is None else text_of_number(stored, of)
        except ValueError:
            return None
    if isinstance(of, String):
        try:
            return part.decode()
        except UnicodeDecodeError:
            return None
    if isinstance(of, Bool):
        return {b"\0": False, b"\1": True}.get(part)
    return int.from_bytes(part, "big", signed=True) if len(part) in _INTEGER_BYTES else None


def _fits(value: Any, of: FieldType) -> bool:
    is_days = isinstance(of, Date) and isinstance(value, int)
    if isinstance(of, String) or (isinstance(of, Logical) and not is_days):
        return isinstance(value, str) and value.encode(errors="replace").decode() == value
    if isinstance(of, Bool):
        return isinstance(value, bool)
    return isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 63


def _word(of: FieldType) -> str:
    if isinstance(of, Logical):
        return rule_of(of).word.removeprefix("a ")
    if isinstance(of, String):
        return "text"
    return "truth value" if isinstance(of, Bool) else "integer"
