"""Which objects of a bucket a folder or a pattern stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.connectors.files.names import FILES_MAX
from ripple.connectors.files.remote.address import checked, matches, pattern_of, scheme_of
from ripple.connectors.files.remote.contract import server_of
from ripple.connectors.files.remote.s3 import Bucket, bucket_and_key
from ripple.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    plain, pattern = pattern_of(key)
    prefix = "".join(f"{part}/" for part in plain)
    for number, (name, version) in enumerate(store.listed(bucket, prefix)):
        if number >= FILES_MAX:
            raise InputError(
                f"s3://{bucket}/{key} has over {FILES_MAX:,} objects: read some by a pattern"
            )
        if not name.endswith("/") and matches(name[len(prefix) :].split("/"), pattern):
            yield name, version
