"""Strict parsing of received messages: an error names the message, and its problem."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from google.protobuf.message import DecodeError, Message

from ripple.control.assignment.member import TEXT_LENGTH_MAX, TEXTS_MAX, check_id
from ripple.core.errors import RippleError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.control.rpc.worker_pb2 import NamedCount, NamedText

# Of versions and other growing numbers: the integers that JSON holds everywhere.
NUMBER_MAX = 2**53

M = TypeVar("M", bound=Message)


class RpcError(RippleError):
    """A received message cannot be parsed, or is invalid; it changed nothing."""


def parsed(kind: type[M], data: bytes) -> M:
    """Parse a message. Raises RpcError for invalid bytes."""
    message: M = kind()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise RpcError(f"{len(data)} bytes are no {kind.DESCRIPTOR.full_name}: {error}") from error
    return message


def choice(message: Message, group: str) -> str:
    """Return which of a group is set. Raises RpcError if this version knows none."""
    name = message.WhichOneof(group)
    if name is None:
        raise RpcError(f"a {message.DESCRIPTOR.full_name} says nothing that this version knows")
    return str(name)


def needs(message: Message, *fields: str) -> None:
    """Raise RpcError for a message without these parts."""
    for name in fields:
        if not message.HasField(name):
            raise RpcError(f"a {message.DESCRIPTOR.full_name} has no {name}")


def text(value: str, name: str, length_max: int = TEXT_LENGTH_MAX) -> str:
    """Return a text that is not too long."""
    if len(value) > length_max:
        raise RpcError(f"{name} has {len(value)} characters, more than {length_max}")
    return value


def number(value: int, name: str, maximum: int = NUMBER_MAX) -> int:
    """Return a number from 0 that is not too large."""
    if not 0 <= value <= maximum:
        raise RpcError(f"{name} is {value}, not 0 to {maximum}")
    return value


def not_too_many(values: Iterable[object], name: str, maximum: int = TEXTS_MAX) -> None:
    """Raise RpcError for a list that is too long."""
    length = sum(1 for _ in values)
    if length > maximum:
        raise RpcError(f"{name} has {length} entries, more than {maximum}")


def worker(value: str, name: str) -> str:
    """Return a worker's id. Raises RpcError for an invalid one."""
    try:
        check_id(value)
    except RippleError as error:
        raise RpcError(f"{name}: {error}") from error
    return value


def texts(pairs: Iterable[NamedText], name: str) -> tuple[tuple[str, str], ...]:
    """Return named texts."""
    pairs = list(pairs)
    not_too_many(pairs, name)
    return tuple((text(one.name, name), text(one.text, f"{name} {one.name:.40}")) for one in pairs)


def counts(pairs: Iterable[NamedCount], name: str) -> tuple[tuple[str, int], ...]:
    """Return named counts."""
    pairs = list(pairs)
    not_too_many(pairs, name)
    return tuple(
        (text(one.name, name), number(one.count, f"{name} {one.name:.40}")) for one in pairs
    )
