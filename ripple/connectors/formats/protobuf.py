"""Values that are messages of Protobuf, also in the frame of a registry.

A file made by ``protoc`` describes the message: a registry has the sources alone, which nothing
but ``protoc`` reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.connectors.coercion import TYPED_TIME
from ripple.connectors.formats.contract import shown_of
from ripple.connectors.formats.rows import batch_of_rows
from ripple.connectors.python_values import word_of
from ripple.connectors.record_shape import arrow_schema_of, value_type
from ripple.core.errors import InputError
from ripple.core.extras import needed
from ripple.model.schema.logical.columns import text_of_number
from ripple.model.schema.logical.lists import word_of_list
from ripple.model.schema.logical.maps import word_of_map
from ripple.model.schema.typed_texts import MARK
from ripple.model.schema.types import (
    Date,
    DateTime,
    Dict,
    Field,
    List,
    Logical,
    LogicalText,
    PatternDate,
)

with needed("protobuf", "format=protobuf of a kafka: URI"):
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from google.protobuf.descriptor import FieldDescriptor as Kind
    from google.protobuf.message import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ripple.connectors.record_shape import RecordShape
    from ripple.model.batch import Batch
    from ripple.model.schema.types import Logical

MESSAGE, DESCRIPTORS = "message", "descriptors"  # the options of the format
HOW = "protoc --include_imports --descriptor_set_out=FILE"
TIMESTAMP, DATE = "google.protobuf.Timestamp", "google.type.Date"
NOT_ONE = "not a message of this type"
OTHER_ONE = "the frame of a registry names another message of its schema"
# No message begins so: fields are numbered from 1 on.
_FRAMED, _ID_BYTES, _VARINT_BYTES_MAX = b"\0", 5, 10

_INTEGERS = (
    *(Kind.TYPE_INT32, Kind.TYPE_INT64, Kind.TYPE_SINT32, Kind.TYPE_SINT64, Kind.TYPE_SFIXED32),
    *(Kind.TYPE_SFIXED64, Kind.TYPE_UINT32, Kind.TYPE_UINT64, Kind.TYPE_FIXED32),
    *(Kind.TYPE_FIXED64, Kind.TYPE_ENUM),
)
_READS = {
    pa.int64(): _INTEGERS,
    pa.float64(): (Kind.TYPE_DOUBLE, Kind.TYPE_FLOAT, *_INTEGERS[:-1]),
    pa.string(): (Kind.TYPE_STRING, Kind.TYPE_ENUM),
    pa.bool_(): (Kind.TYPE_BOOL,),
}
_WRAPPERS = {
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}
_WORDS = {
    number: name.removeprefix("TYPE_").lower()
    for name, number in vars(Kind).items()
    if name.startswith("TYPE_")
}


class ProtobufValues:
    """Each value is one message; its fields are taken by their names, and others are ignored.

    A field that can tell that it was not set is none then; others have the default of Protobuf.
    An enumeration is its number, or its name where the pipeline has a text; a
    ``google.protobuf.Timestamp`` is its nanoseconds, a wrapper (``Int64Value``) its value. A date
    is a text, an integer of days since 1970, or a ``google.type.Date``.
    """

    at_once = False

    def __init__(self, shape: RecordShape, options: Mapping[str, str]) -> None:
        """Read messages as the options ``message`` and ``descriptors`` say.

        Raises InputError where the file has no such message, or its fields do not fit the shape.
        """
        self.shape = shape
        said = [options.get(one, "") for one in (MESSAGE, DESCRIPTORS)]
        if not all(said):
            raise InputError(
                f"format=protobuf needs {MESSAGE}=, the name of the message with its package, and "
                f"{DESCRIPTORS}=, a file that {HOW} has made"
            )
        described = _described(*said)
        self._path = _path_of(described)
        self._message: Any = message_factory.GetMessageClass(described)
        getters = {
            field.name: _getter_at(
                shape.paths.get(field.name, (field.name,)),
                field.type,
                described,
                shape.logical.get(field.name),
            )
            for field in arrow_schema_of(shape.schema.fields)
        }
        for name in sorted(shape.units):
            if _is_time(shape.paths.get(name, (name,)), described):
                raise InputError(f"field {name!r} of message {said[0]} is {TYPED_TIME}")
        self._fields = {name: get for name, get in getters.items() if get is not None}
        for member in shape.schema.fields:
            if member.name not in self._fields and not member.optional:
                raise InputError(f"message {said[0]} of {said[1]} has no field {member.name!r}")

    def batch(self, values: pa.Array) -> Batch:
        """Return the records of values; see Values."""
        rows: list[dict[str, Any]] = []
        refused: dict[int, str] = {}
        parse, fields = self._message.FromString, tuple(self._fields.items())
        for value in values.to_pylist():
            row: dict[str, Any] = {}
            try:
                message = parse(value if value[:1] != _FRAMED else self._unframed(value))
                row = {name: get(message) for name, get in fields}
            except DecodeError:
                refused[len(rows)] = NOT_ONE
            except _OtherError:
                refused[len(rows)] = OTHER_ONE
            rows.append(row)
        return batch_of_rows(rows, refused, self.shape, shown_of(values))

    def _unframed(self, value: bytes) -> bytes:
        """Return the message of a schema's id and its index in the schema."""
        count, at = _varint(value, _ID_BYTES)
        path = []
        for _ in range(min(count, len(self._path) + 1)):
            index, at = _varint(value, at)
            path.append(index)
        if (path or [0]) != self._path:
            raise _OtherError
        return value[at:]


class _OtherError(Exception):
    pass


def _varint(value: bytes, at: int) -> tuple[int, int]:
    found = 0
    for number, byte in enumerate(value[at : at + _VARINT_BYTES_MAX]):
        found |= (byte & 0x7F) << 7 * number
        if byte < 0x80:
            return found >> 1 ^ -(found & 1), at + number + 1
    raise DecodeError


def _described(name: str, path: str) -> Any:
    """Return the description of a message in a file."""
    try:
        with open(path, "rb") as file:
            files = descriptor_pb2.FileDescriptorSet.FromString(file.read())
        pool = descriptor_pool.DescriptorPool()
        for one in files.file:
            pool.Add(one)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (DecodeError, TypeError) as error:
        raise InputError(f"{path} is not what {HOW} makes: {error}") from error
    try:
        return pool.FindMessageTypeByName(name)
    except KeyError as error:
        own = [one for one in files.file if one.package != "google.protobuf"]
        known = ", ".join(f"{one.package}.{m.name}".lstrip(".") for one in own
                          for m in one.message_type)  # fmt: skip
        raise InputError(f"{path} has no message {name!r}: it has {known or 'none'}") from error


def _path_of(described: Any) -> list[int]:
    """Return the position of a message in its file, or in the message around it."""
    around = described.containing_type
    if around is None:
        return [list(described.file.message_types_by_name).index(described.name)]
    return [*_path_of(around), list(around.nested_types_by_name).index(described.name)]


def _getter_at(
    parts: Sequence[str], wanted: pa.DataType, described: Any, logical: Logical | List | None = None
) -> Callable[[Any], Any] | None:
    """Return a getter of the value at a path in a message, None where the message has none.

    Raises InputError for another type.
    """
    name, *within = parts
    field = described.fields_by_name.get(name)
    if field is None:
        return None
    if not within:
        if isinstance(logical, List):
            return _list_getter(name, described, logical)
        if isinstance(logical, Dict):
            return _map_getter(name, described, logical)
        return _getter(name, wanted, described, logical)
    if field.type != Kind.TYPE_MESSAGE or field.is_repeated:
        found = f"{'repeated ' if field.is_repeated else ''}{_WORDS[field.type]}"
        raise InputError(
            f"field {name!r} of message {described.full_name} is {found}, and the pipeline's is a "
            f"record, with {'.'.join(within)!r}"
        )
    inner = _getter_at(within, wanted, field.message_type, logical)
    if inner is None:
        return None

    def get(message: Any) -> Any:
        return inner(getattr(message, name)) if message.HasField(name) else None

    return get


def _list_getter(name: str, described: Any, of: List) -> Callable[[Any], Any]:
    """Return a getter of a repeated field, as ``_getter`` does."""
    field = described.fields_by_name[name]
    if field.is_repeated and isinstance(of.of, Logical):
        read = _reader(field, pa.string(), described, of.of, word_of_list(of))
        return lambda message: [*map(read, getattr(message, name))]
    if not field.is_repeated or field.type not in _READS[value_type(Field("item", of.of))[0]]:
        raise _another(field, described, "", word_of_list(of))
    return lambda message: list(getattr(message, name))


def _map_getter(name: str, described: Any, of: Dict) -> Callable[[Any], Any]:
    """Return a getter of a map field, as ``_getter`` does."""
    field = described.fields_by_name[name]
    entry = field.message_type.fields_by_name if _is_map(field) else {}
    reads = _READS[value_type(Field("value", of.of))[0]]
    if not entry or entry["key"].type != Kind.TYPE_STRING or entry["value"].type not in reads:
        raise InputError(
            f"field {name!r} of message {described.full_name} is no map of texts to such values, "
            f"and the pipeline's is {word_of_map(of)}"
        )
    return lambda message: dict(getattr(message, name))


def _is_map(field: Any) -> bool:
    kind = field.message_type
    return kind is not None and bool(kind.GetOptions().map_entry)


def _is_time(path: Sequence[str], described: Any) -> bool:
    """Return whether a field that a pipeline takes as an integer is a moment."""
    for name in path:
        field = None if described is None else described.fields_by_name.get(name)
        described = None if field is None else field.message_type
    return described is not None and described.full_name == TIMESTAMP


def _getter(
    name: str, wanted: pa.DataType, described: Any, logical: Logical | None
) -> Callable[[Any], Any]:
    """Return a getter of a field's value in a message. Raises InputError for another type.

    logical: the type of the texts; a date may be the days since 1970 as well, or
    ``google.type.Date``.
    """
    field = described.fields_by_name[name]
    if field.is_repeated:
        inner = field.message_type.full_name if field.type == Kind.TYPE_MESSAGE else ""
        raise _another(field, described, inner, word_of(wanted, logical))
    read = _reader(field, wanted, described, logical, word_of(wanted, logical))

    def get(message: Any) -> Any:
        if field.has_presence and not message.HasField(name):
            return None
        return read(getattr(message, name))

    return get


def _another(field: Any, described: Any, inner: str, word: str) -> InputError:
    """Return the error for another type. inner: of a message; else "". word: the wanted type."""
    found = f"{'repeated ' if field.is_repeated else ''}{inner or _WORDS[field.type]}"
    return InputError(
        f"field {field.name!r} of message {described.full_name} is {found}, and the pipeline's is "
        f"{word}"
    )


def _reader(
    field: Any, wanted: pa.DataType, described: Any, logical: Logical | None, word: str
) -> Callable[[Any], Any]:
    """Return the conversion of a field's values, or of a repeated field's items.

    Raises InputError for another type. word: of the wanted one.
    """
    inner = field.message_type.full_name if field.type == Kind.TYPE_MESSAGE else ""
    is_time = inner == TIMESTAMP and (wanted == pa.int64() or isinstance(logical, DateTime))
    is_date = inner == DATE and isinstance(logical, Date)
    kind = field.message_type.fields_by_name["value"].type if inner in _WRAPPERS else field.type
    is_days = isinstance(logical, Date) and kind in _INTEGERS[:-1]
    is_own = is_time or is_date or is_days
    is_own |= isinstance(logical, LogicalText) and kind == Kind.TYPE_BYTES
    if not (is_own or kind in _READS.get(wanted, ())):
        raise _another(field, described, inner, word)
    names = None
    if field.type == Kind.TYPE_ENUM and wanted == pa.string():
        names = {number: one.name for number, one in field.enum_type.values_by_number.items()}

    def read(value: Any) -> Any:
        if is_time:
            number = value.seconds * 1_000_000_000 + value.nanos
            return number if logical is None else text_of_number(number, logical)
        if is_date:
            mark = MARK if isinstance(logical, PatternDate) else ""
            return f"{mark}{value.year:04}-{value.month:02}-{value.day:02}"
        if inner:
            value = value.value
        if is_days:
            assert isinstance(logical, Date)
            return text_of_number(value, logical)
        if inner:
            return value
        return value if names is None else names.get(value, str(value))

    return read
