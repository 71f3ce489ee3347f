"""A store by its place: a folder, or ``s3://bucket/prefix``."""

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
    """Open a store for the running loop; what fails is not repeated: see RetryingStore.

    settings: of S3, by default what the environment says. is_read: it is for reading only, and a
    folder is not made. is_probed: first make sure that a store in S3 refuses a second put; folders
    need no proof. Raises SettingsError for a place that is none, ModuleNotFoundError without the
    extra ``s3``, UnsafeStoreError and StoreError.
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
    """Open a store that is there, to read it only; what fails is repeated.

    flag: of the command that was given the place. Raises InputError, which names it, for an absent
    folder, and what ``open_store`` does.
    """
    if not is_s3(place) and not Path(place).is_dir():
        hint = f": name another with {flag}" if flag else ""
        raise InputError(f"there is no folder {place}{hint}")
    async with open_store(place, is_read=True) as store:
        yield RetryingStore(store, LiveClock(), LiveRandom()) if is_s3(place) else store


def _folder(place: str, *, make: bool) -> LiveDisk:
    """Return the folder. Raises StoreRefusedError where a file stands, also as one above it."""
    try:
        return LiveDisk(place, make=make)
    except (FileExistsError, NotADirectoryError) as error:
        raise StoreRefusedError(
            f"{place} cannot be a store, for a file stands there: name a folder, or "
            "s3://BUCKET/PREFIX"
        ) from error
