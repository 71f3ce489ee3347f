"""Envelopes of Debezium: rows after a change, and deletions. ``before`` is never read."""

from __future__ import annotations

import json
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.connectors.formats.connect_types import as_texts, types_after
from ripple.connectors.formats.record_keys import payload
from ripple.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ripple.connectors.formats.record_keys import RecordKeys
    from ripple.model.pipeline.nodes import TableSpec
    from ripple.model.schema.types import List, Logical
    from ripple.world.broker import Read

_UPSERTS = ("c", "r", "u")
_DELETION, _TRUNCATION = "d", "t"
_UNAVAILABLE = "__debezium_unavailable_value"  # unavailable.value.placeholder, unless it was set
NO_KEY = "the record has no key, by which Debezium names its row"


class Envelopes:
    """The content of a table's envelopes."""

    def __init__(
        self,
        table: TableSpec,
        keys: RecordKeys,
        read: Callable[[bytes], Any] | None = None,
        logical: Mapping[str, Logical | List] = MappingProxyType({}),
    ) -> None:
        """read: returns an envelope; by default one in JSON, with its schema or without.

        logical: the fields of text of a logical type, which JSON has in Debezium's forms.
        """
        self._read = read or partial(of_json, logical=logical)
        self._fields = [member.name for member in table.fields]
        self._stops = table.truncate == "stop"
        self._keys = keys

    def opened(
        self, read: Read, where: str, keys: dict[int, dict[str, Any]], refused: dict[int, str]
    ) -> pa.Array:
        """Return each record's row as JSON, with the fields of its record key.

        Null for a deletion, and for a record that is ``refused``. where: the partition, for errors.
        keys, refused: get the fields of record keys, and the reasons, by row. Raises InputError for
        a truncation that stops the run.
        """
        rows: list[bytes | None] = []
        pairs = zip(read.records.keys.to_pylist(), read.records.values.to_pylist(), strict=True)
        for number, (key, value) in enumerate(pairs):
            row = None
            try:
                after = None if value is None else _after(self._read(value))
                if key is None:
                    raise ValueError(NO_KEY)
                keys[number] = self._keys.fields_of(key)
                if after is not None:
                    known = {name: after[name] for name in self._fields if name in after}
                    _check_whole(known)
                    row = json.dumps({**known, **keys[number]}).encode()
            except _TruncatedError as error:
                if self._stops:
                    raise _stopped(where, int(read.offsets[number])) from None
                refused[number] = str(error)
            except ValueError as error:
                refused[number] = str(error)
            rows.append(row)
        return pa.array(rows, pa.binary())


class _TruncatedError(Exception):
    """The record tells of a truncated table."""


def of_json(value: bytes, logical: Mapping[str, Logical | List] = MappingProxyType({})) -> Any:
    """Return an envelope in JSON; raises ValueError, with the reason.

    logical: the fields with texts for values of logical types.
    """
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        raise ValueError("the value is not JSON, as an envelope of Debezium is") from None
    envelope = payload(found)
    after = envelope.get("after") if logical and isinstance(envelope, dict) else None
    if not isinstance(after, dict):
        return envelope
    types = types_after(found["schema"]) if envelope is not found else {}
    return {**envelope, "after": as_texts(after, logical, types)}


def _after(envelope: Any) -> dict[str, Any] | None:
    """Return the row after a change, None for a deletion; raises ValueError, with the reason."""
    op = envelope.get("op") if isinstance(envelope, dict) else None
    if op is None:
        raise ValueError("the value has no op, as an envelope of Debezium has")
    if op == _TRUNCATION:
        raise _TruncatedError("the table was truncated (op 't'), which names no key")
    if op == _DELETION:
        return None
    if op not in _UPSERTS:
        raise ValueError(f"the op {op!r:.20} of the envelope is none of c, r, u, d and t")
    after = envelope.get("after")
    if not isinstance(after, dict):
        raise ValueError(f"the envelope has op {op!r} and no row in after")
    return after


def _check_whole(row: dict[str, Any]) -> None:
    """Raise ValueError for a row without a value that did not change."""
    for name, value in row.items():
        if value == _UNAVAILABLE:
            raise ValueError(
                f"{name} is not in the envelope, as a large value of PostgreSQL that did not "
                "change: the table there needs REPLICA IDENTITY FULL"
            )


def _stopped(where: str, offset: int) -> InputError:
    return InputError(
        f"{where}, offset {offset}: the table was truncated (op 't'), which names no key, and is "
        "told in one partition alone: say truncate='letter' in .table(...) to keep its rows, or "
        "read a topic with a new snapshot, into another --checkpoint-dir and other outputs"
    )
