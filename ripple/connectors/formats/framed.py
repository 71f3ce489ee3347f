"""Values as Confluent's serializers frame them: a zero, a schema's id in four bytes, the rest."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from ripple.connectors.formats.json import buffers_of
from ripple.connectors.formats.registry import RegistryError
from ripple.core.errors import InputError, SchemaError
from ripple.model.schema.compat import check_readable
from ripple.model.schema.types import (
    Dict,
    Field,
    FieldType,
    Int,
    Int64,
    Logical,
    Option,
    Schema,
    String,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    import numpy.typing as npt
    import pyarrow as pa

    from ripple.connectors.formats.registry import Registered, Registry
    from ripple.connectors.record_shape import RecordShape

T = TypeVar("T")

HEAD_BYTES = 5
SCHEMAS_MAX = 512
NOT_FRAMED = "it does not begin with a zero and the id of a schema"


class WriterSchemas(Generic[T]):
    """How records of a registry's schemas are read, by the ids of these; each is found once.

    Invariant: at most SCHEMAS_MAX are held. A missing one is asked for each time.
    """

    def __init__(
        self, registry: Registry, reading: Callable[[Registered], T], refusal: Callable[[str], T]
    ) -> None:
        """Ask nothing yet. reading: of a schema. refusal: the same with a reason against it."""
        self._registry, self._reading, self._refusal = registry, reading, refusal
        self._found: dict[int, T] = {}

    def at(self, number: int) -> T:
        """Return how records of a schema are read, or why they cannot be.

        Raises InputError where the registry does not answer: then no record is at fault.
        """
        known = self._found.get(number)
        if known is not None:
            return known
        try:
            schema = self._registry.schema(number)
        except RegistryError as error:
            raise InputError(str(error)) from error
        if schema is None:
            return self._refusal(f"the registry has no schema {number}")
        if len(self._found) >= SCHEMAS_MAX:
            self._found.clear()
        known = self._found[number] = self._reading(schema)
        return known


def head_of(number: int) -> bytes:
    """Return the frame before a value of a schema."""
    return struct.pack(">bI", 0, number)


def by_schema(values: pa.Array) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Yield (id, its rows), ascending; -1 of unframed ones."""
    ends, data = buffers_of(values)
    held = np.frombuffer(data, np.uint8)
    starts, lengths = ends[:-1].astype(np.int64), np.diff(ends)
    ids = np.full(len(starts), -1, np.int64)
    long_enough = np.flatnonzero(lengths >= HEAD_BYTES)
    heads = held[starts[long_enough, None] + np.arange(HEAD_BYTES)].astype(np.int64)
    number = heads[:, 1] << 24 | heads[:, 2] << 16 | heads[:, 3] << 8 | heads[:, 4]
    ids[long_enough] = np.where(heads[:, 0] == 0, number, -1)
    if len(ids) and (ids == ids[0]).all():
        yield int(ids[0]), np.arange(len(ids))
        return
    for one in np.unique(ids).tolist():
        yield one, np.flatnonzero(ids == one)


def check_subject(
    registry: Registry,
    subject: str,
    form: str,
    shape: RecordShape,
    understood: Callable[[Any, RecordShape], Schema],
) -> None:
    """Raise InputError unless records of a subject's newest schema can be read as ``shape``.

    understood: from the text of a schema to those of its fields that the shape has. A subject
    without a schema is no error.
    """
    try:
        found = registry.latest(subject)
    except RegistryError as error:
        raise InputError(f"cannot check subject {subject!r}: {error}") from error
    if found is None:
        return
    why = unreadable(found, form, shape, understood)
    if why:
        raise InputError(f"subject {subject!r}, schema {found.id} of {registry.url}: {why}")


def unreadable(
    found: Any, form: str, shape: RecordShape, understood: Callable[[Any, RecordShape], Schema]
) -> str:
    """Return why a registered schema's records cannot be read as ``shape``; "" if they can."""
    if found.form != form:
        return f"it is {found.form}, and {form} was asked for"
    try:
        writer = understood(found.text, shape)
    except SchemaError as error:
        return str(error)
    verdict = check_readable(_as_columns(shape.schema), _as_columns(writer))
    return "" if verdict else "; ".join(str(one) for one in verdict.differences)


def _as_columns(schema: Schema) -> Schema:
    """Return a schema in which fields that become the same column are the same."""
    fields = []
    for field in schema.fields:
        kind, optional = field.type, field.optional
        if isinstance(kind, Option):
            kind, optional = kind.of, True
        fields.append(Field(field.name, _as_column(kind), optional))
    return Schema(schema.name, tuple(fields))


def _as_column(kind: FieldType) -> FieldType:
    if isinstance(kind, Int64):
        return Int()
    if isinstance(kind, Dict):
        return Dict(_as_column(kind.of))
    return String() if isinstance(kind, Logical) else kind
