"""Which objects of a bucket a folder or a pattern stands for."""

from __future__ import annotations

from fnmatch import fnmatchcase
from glob import has_magic
from itertools import takewhile
from typing import TYPE_CHECKING

from ripple.connectors.files.names import FILES_MAX, HIDDEN
from ripple.connectors.files.remote.address import checked, scheme_of
from ripple.connectors.files.remote.contract import server_of
from ripple.connectors.files.remote.s3 import Bucket, bucket_and_key
from ripple.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ripple.connectors.files.version import Version


def found_at(place: str) -> list[tuple[str, Version]]:
    """Return the files at an address, ordered by name as in a folder.

    That is one file, or with ``s3:`` also the files below a prefix, or of a pattern. Raises
    InputError and InputAwayError.
    """
    if scheme_of(place) != "s3":
        return [(checked(place), server_of(place).version(place))]
    store = server_of(place)
    assert isinstance(store, Bucket)
    bucket, key = bucket_and_key(place)
    # an object of this very name comes before a pattern, as a file of this machine does
    if not key.endswith("/") and (found := store.find(place)) is not None:
        return [(place, found)]
    found_all = sorted(
        (tuple(name.split("/")), version) for name, version in _matching(store, bucket, key)
    )
    return [(f"s3://{bucket}/{'/'.join(names)}", version) for names, version in found_all]


def _matching(store: Bucket, bucket: str, key: str) -> Iterator[tuple[str, Version]]:
    parts = key.rstrip("/").split("/")
    plain = list(takewhile(lambda part: not has_magic(part), parts))
    pattern = parts[len(plain) :] or ["**"]
    if pattern[-1] == "**":
        pattern = [*pattern, "*"]
    prefix = "".join(f"{part}/" for part in plain)
    for number, (name, version) in enumerate(store.listed(bucket, prefix)):
        if number >= FILES_MAX:
            raise InputError(
                f"s3://{bucket}/{key} has over {FILES_MAX:,} objects: read some by a pattern"
            )
        if not name.endswith("/") and matches(name[len(prefix) :].split("/"), pattern):
            yield name, version


def matches(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return whether folders and a name are of a pattern; ``**`` stands for any folders."""
    if not pattern or not names:
        return not pattern and not names
    first, rest = pattern[0], pattern[1:]
    if first == "**" and matches(names, rest):
        return True
    if names[0].startswith(HIDDEN):
        return False
    if first == "**":
        return len(names) > 1 and matches(names[1:], pattern)
    return fnmatchcase(names[0], first) and matches(names[1:], rest)
