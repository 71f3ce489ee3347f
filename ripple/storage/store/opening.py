"""Opens a store by its URI: a folder, or ``s3://bucket/prefix``."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ripple.core.errors import InputError
from ripple.storage.store.disk import DiskStore
from ripple.storage.store.errors import StoreRefusedError
from ripple.storage.store.probe import probe
from ripple.storage.store.retrying import RetryingStore
from ripple.storage.store.s3_settings import S3Settings, is_s3, split_url
from ripple.world import LiveClock, LiveDisk, LiveRandom

if TYPE_CHECKING:
    from ripple.world.ports import ObjectStore


@asynccontextmanager
async def open_store(
    place: str,
    settings: S3Settings | None = None,
    *,
    is_read: bool = False,
    is_probed: bool = False,
) -> AsyncIterator[ObjectStore]:
    """Open a store for the running loop, without retries (see RetryingStore).

    settings: of S3, by default from the environment. is_read: read-only; a missing folder is not
    made. is_probed: first verify that a store in S3 rejects a second put. Raises SettingsError for
    an invalid URI, ModuleNotFoundError without the extra ``s3``, UnsafeStoreError and StoreError.
    """
    if not is_s3(place):
        yield DiskStore(_folder(place, make=not is_read), None if is_read else LiveRandom())
        return
    bucket, prefix = split_url(place)
    from ripple.storage.store.s3 import S3Store  # noqa: PLC0415 - slow to import, and of an extra

    random = LiveRandom()
    if settings is None:
        settings = S3Settings.of_environment(os.environ)
    store = S3Store(bucket, prefix, random, settings)
    try:
        if is_probed:
            await probe(RetryingStore(store, LiveClock(), random), random, str(store))
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def store_to_read(place: str, flag: str = "") -> AsyncIterator[ObjectStore]:
    """Open an existing store read-only, with retries.

    flag: the command's flag for the store, which the error names. Raises InputError for a missing
    folder, and as ``open_store`` does.
    """
    if not is_s3(place) and not Path(place).is_dir():
        hint = f": name another with {flag}" if flag else ""
        raise InputError(f"there is no folder {place}{hint}")
    async with open_store(place, is_read=True) as store:
        yield RetryingStore(store, LiveClock(), LiveRandom()) if is_s3(place) else store


def _folder(place: str, *, make: bool) -> LiveDisk:
    """Return the folder. Raises StoreRefusedError where a file stands, or above it."""
    try:
        return LiveDisk(place, make=make)
    except (FileExistsError, NotADirectoryError) as error:
        raise StoreRefusedError(
            f"{place} cannot be a store, for a file stands there: name a folder, or "
            "s3://BUCKET/PREFIX"
        ) from error
