"""One entry of a chain, and its bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Any, Generic, Protocol, TypeVar

from ripple.storage.fenced.errors import ChainError, DamagedError

FORMAT = 1
BYTES_MAX = 64 << 20
ENTRIES_REMEMBERED = 16  # per process, the most recently read

T = TypeVar("T")


class Content(Protocol[T]):
    """The codec of a chain's contents as JSON, which its user supplies.

    It is a value, and its results must not be changed: entries are shared between readers. No field
    is named ``format``, ``number``, ``owner`` or ``previous``.
    """

    def to_fields(self, content: T, /) -> Mapping[str, Any]:
        """Return the content as fields of a JSON object."""
        ...

    def from_fields(self, fields: Mapping[str, Any], /) -> T:
        """Return the content from the output of ``to_fields`` of this release or an earlier one."""
        ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True)
class Entry(Generic[T]):
    """Entry ``number`` of a chain. owner: the writer's nonce.

    previous: the checksum of the previous entry, "" for the first or after a damaged one.
    """

    number: int
    owner: str
    previous: str
    content: T
    codec: Content[T]

    @cached_property
    def encoded(self) -> bytes:
        """The entry as two lines: a checksum of the second, and JSON."""
        fields = {
            "format": FORMAT,
            "number": self.number,
            "owner": self.owner,
            "previous": self.previous,
            **self.codec.to_fields(self.content),
        }
        body = json.dumps(fields, sort_keys=True).encode()
        return _checksum(body) + b"\n" + body + b"\n"

    @property
    def checksum(self) -> str:
        """The checksum in its first line."""
        return self.encoded.partition(b"\n")[0].decode()


def decode_entry(
    data: bytes, name: str, codec: Content[T], *, is_verified: bool = True
) -> Entry[T]:
    """Return an entry. Raises DamagedError, or ChainError for a newer format."""
    checksum, _, body = data.partition(b"\n")
    if is_verified and (not body.endswith(b"\n") or _checksum(body[:-1]) != checksum):
        raise DamagedError(f"{name} is damaged: it does not have its checksum")
    return _entry_of(body, name, codec)


@lru_cache(maxsize=ENTRIES_REMEMBERED)
def _entry_of(body: bytes, name: str, codec: Content[T]) -> Entry[T]:
    """Return the entry of a body; cached, since the newest one is read again and again."""
    held: dict[str, Any] = json.loads(body)
    version = held.pop("format")
    if version > FORMAT:
        raise ChainError(
            f"{name} has format {version}, this version of Ripple reads up to {FORMAT}: upgrade it"
        )
    number, owner, previous = held.pop("number"), held.pop("owner"), held.pop("previous")
    return Entry(number, owner, previous, codec.from_fields(held), codec)


def _checksum(body: bytes) -> bytes:
    return blake2b(body, digest_size=32).hexdigest().encode()
