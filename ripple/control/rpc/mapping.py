"""Dataclasses as protobuf messages and back, by the names and types of their fields.

| type of a field | in the message |
|---|---|
| bool, int, float, str, bytes, an enum's value | the same |
| ``X | None`` | an optional field |
| tuple[X, ...], frozenset[X] | a repeated field |
| tuple[A, B] | a message, its fields in order |
| a dataclass | a message, its fields by name; one that has only one field may stand for that |
| Encoded | bytes |

Reading validates by the marks of ``ripple.control.assignment.bounds``.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message

from ripple.control.assignment.bounds import NUMBER_MAX, AtMost, Checked, Encoded
from ripple.core.errors import RippleError

T = TypeVar("T")
M = TypeVar("M", bound=Message)
Write = Callable[[Any], Any]
Read = Callable[[Any, str], Any]  # the value, and its field's name


class RpcError(RippleError):
    """A received message cannot be parsed, or is invalid; it changed nothing."""


def to_bytes(value: object, kind: type[Message]) -> bytes:
    """Return a dataclass as the bytes of a message of this kind."""
    return bytes(to_message(value, kind).SerializeToString())


def to_message(value: object, kind: type[M]) -> M:
    """Return a dataclass as a message of this kind."""
    hint: Any = type(value)
    message: M = kind(**_codec(hint, kind.DESCRIPTOR).write(value))
    return message


def from_bytes(kind: type[T], message: type[Message], data: bytes) -> T:
    """Parse a message. Raises RpcError."""
    return from_message(kind, parsed(message, data))


def from_message(kind: type[T], message: Message) -> T:
    """Return a message as a dataclass. Raises RpcError."""
    hint: Any = kind
    value: T = _codec(hint, message.DESCRIPTOR).read(message, message.DESCRIPTOR.name)
    return value


def parsed(kind: type[M], data: bytes) -> M:
    """Parse a message. Raises RpcError for invalid bytes."""
    message: M = kind()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise RpcError(f"{len(data)} bytes are no {kind.DESCRIPTOR.full_name}: {error}") from error
    return message


class Choice:
    """One of several dataclasses: its oneof, by the names of the fields."""

    def __init__(self, message: type[Message], kinds: Mapping[str, type]) -> None:
        """``kinds``: every field of the message's only oneof."""
        self._message = message
        (group,) = message.DESCRIPTOR.oneofs
        self._group = group.name
        parts = {each.name: each.message_type for each in group.fields}
        self._codecs = {name: _codec(kind, parts[name]) for name, kind in kinds.items()}
        self._names = {kind: name for name, kind in kinds.items()}

    def to_bytes(self, value: object) -> bytes:
        """Return one of the dataclasses as bytes."""
        name = self._names[type(value)]
        message = self._message(**{name: self._codecs[name].write(value)})
        return bytes(message.SerializeToString())

    def from_bytes(self, data: bytes) -> Any:
        """Parse a message. Raises RpcError; also for a message without known fields."""
        message = parsed(self._message, data)
        name = choice(message, self._group)
        return self._codecs[name].read(getattr(message, name), name)


def choice(message: Message, group: str) -> str:
    """Return which of a group is set. Raises RpcError if this version knows none."""
    name = message.WhichOneof(group)
    if name is None:
        raise RpcError(f"a {message.DESCRIPTOR.full_name} says nothing that this version knows")
    return str(name)


class _Codec(NamedTuple):
    """How values are written and read.

    A message is written as a mapping: protobuf makes all messages of a tree from one in half the
    time that it takes to make and copy each.
    """

    write: Write
    read: Read


@cache
def _codec(hint: Any, message: Descriptor | None) -> _Codec:
    """Return how values of a type are written and read; message: of a field that is one."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _marked(args[0], args[1:], message)
    if origin in (Union, types.UnionType):
        (some,) = (one for one in args if one is not type(None))
        return _codec(some, message)
    if origin in (tuple, frozenset) and (origin is frozenset or args[-1] is Ellipsis):
        return _repeated(origin, _codec(args[0], message))
    if origin is tuple:
        assert message is not None
        return _positional(args, message)
    if is_dataclass(hint):
        assert message is not None
        return _named(hint, message)  # type: ignore[arg-type]  # a class, not an object of one
    if issubclass(hint, Enum):
        return _Codec(lambda one: one.value, lambda value, name: _member_of(hint, value, name))
    if hint is int:
        return _marked(int, (AtMost(NUMBER_MAX),), message)
    return _Codec(_text, _as_is) if hint is str else _PLAIN


def _marked(kind: Any, marks: tuple[Any, ...], message: Descriptor | None) -> _Codec:
    """Return the codec of a type with its marks."""
    if isinstance(marks[0], Encoded):
        return _Codec(marks[0].to_bytes, lambda value, _: marks[0].from_bytes(value))
    codec = _PLAIN if kind is int else _codec(kind, message)
    for mark in marks:
        codec = _bounded(codec, mark) if isinstance(mark, AtMost) else _checked(codec, mark)
    return codec


def _bounded(codec: _Codec, bound: AtMost) -> _Codec:
    limit = bound.limit
    if codec == _PLAIN and not bound.clamps:
        return _Codec(_same, partial(_number, limit))

    def write(value: Any) -> Any:
        value = codec.write(value)
        if bound.clamps:
            return min(max(value, 0), type(value)(limit))
        return value if bound.cut is None else value[: bound.cut]

    def read(value: Any, name: str) -> Any:
        if bound.clamps and isinstance(value, int):
            return min(value, limit)
        if isinstance(value, (int, float)):
            return _number(limit, value, name)
        if len(value) > limit:
            what = "characters" if isinstance(value, str) else "entries"
            raise RpcError(f"{name} has {len(value)} {what}, more than {limit}")
        return codec.read(value, name)

    return _Codec(codec.write if bound.cut is None and not bound.clamps else write, read)


def _checked(codec: _Codec, mark: Checked) -> _Codec:
    def read(value: Any, name: str) -> Any:
        try:
            mark.check(value)
        except RippleError as error:
            raise RpcError(f"{name}: {error}") from error
        return codec.read(value, name)

    return _Codec(codec.write, read)


def _repeated(kind: type, codec: _Codec) -> _Codec:
    def write(values: Any) -> list[Any]:
        return [codec.write(one) for one in (sorted(values) if kind is frozenset else values)]

    return _Codec(write, lambda values, name: kind([codec.read(one, name) for one in values]))


def _positional(hints: tuple[Any, ...], message: Descriptor) -> _Codec:
    """Return the codec of a tuple; a dataclass at its end may have all further fields."""
    kind = hints[-1] if len(hints) < len(message.fields) else None
    before = hints if kind is None else hints[:-1]
    parts = [
        (each.name, _codec(hint, each.message_type))
        for hint, each in zip(before, message.fields, strict=False)
    ]
    writes = [(name, codec.write) for name, codec in parts]

    def write(values: tuple[Any, ...]) -> dict[str, Any]:
        named = zip(writes, values, strict=False)
        made = {name: write(value) for (name, write), value in named}
        return made if kind is None else made | _mapping(values[-1], message)

    def read(value: Message, _: str) -> tuple[Any, ...]:
        found = [codec.read(getattr(value, name), name) for name, codec in parts]
        return tuple(found) if kind is None else (*found, kind(**fields_from(kind, value)))

    return _Codec(write, read)


class _Part(NamedTuple):
    """A field. absent: its value where the message has none; MISSING if it has to be there."""

    name: str
    codec: _Codec
    has_presence: bool
    absent: Any


@cache
def _parts(kind: type, message: Descriptor) -> list[_Part]:
    """Return those fields of a dataclass that a message has."""
    hints = get_type_hints(kind, include_extras=True)
    parts = []
    for each in fields(kind):
        field = message.fields_by_name.get(each.name)
        if field is not None:
            absent = None if type(None) in get_args(hints[each.name]) else each.default
            codec = _codec(hints[each.name], field.message_type)
            parts.append(_Part(each.name, codec, field.has_presence, absent))
    return parts


def fields_to(value: object, kind: type[M]) -> M:
    """Return those fields of a dataclass that a message has, as one."""
    message: M = kind(**_mapping(value, kind.DESCRIPTOR))
    return message


def _mapping(value: object, message: Descriptor) -> dict[str, Any]:
    hint: Any = type(value)
    return {
        name: codec.write(one)
        for name, codec, _, _ in _parts(hint, message)
        if (one := getattr(value, name)) is not None
    }


def fields_from(kind: type, message: Message) -> dict[str, Any]:
    """Return those fields of a dataclass that a message has. Raises RpcError."""
    found = {}
    for name, codec, has_presence, absent in _parts(kind, message.DESCRIPTOR):
        if not has_presence or message.HasField(name):
            found[name] = codec.read(getattr(message, name), name)
        elif absent is MISSING:
            raise RpcError(f"a {message.DESCRIPTOR.full_name} has no {name}")
        else:
            found[name] = absent
    return found


def _named(kind: type, message: Descriptor) -> _Codec:
    names = [each.name for each in fields(kind)]
    unknown = [name for name in names if name not in message.fields_by_name]
    if unknown and len(names) == 1:
        return _standing_for(kind, names[0], message)
    if unknown:
        raise TypeError(f"{message.full_name} has no field {unknown[0]} of {kind.__name__}")

    def read(value: Message, _: str) -> Any:
        try:
            return kind(**fields_from(kind, value))
        except RpcError:
            raise
        except RippleError as error:
            raise RpcError(f"a {message.full_name} is invalid: {error}") from error

    return _Codec(lambda value: _mapping(value, message), read)


def _standing_for(kind: type, name: str, message: Descriptor) -> _Codec:
    """Return the codec of a dataclass whose only field is the whole message."""
    codec = _codec(get_type_hints(kind, include_extras=True)[name], message)
    return _Codec(
        lambda value: codec.write(getattr(value, name)),
        lambda value, _: kind(codec.read(value, name)),
    )


def _member_of(kind: type[Enum], value: Any, name: str) -> Enum:
    try:
        return kind(value)
    except ValueError as error:
        raise RpcError(f"{name} is {value!r:.40}") from error


def _same(value: Any) -> Any:
    return value


def _as_is(value: Any, _: str) -> Any:
    return value


def _number(limit: float, value: Any, name: str) -> Any:
    if 0 <= value <= limit:
        return value
    raise RpcError(f"{name} is {value}, not 0 to {limit}")  # NaN is outside, too


_PLAIN = _Codec(_same, _as_is)


def _text(value: str) -> str:
    """Return a text that protobuf can hold: names of files may have bytes that are no text."""
    return value if value.isascii() else value.encode(errors="backslashreplace").decode()
