"""The store that a command is given: a folder, or ``s3://bucket/prefix``."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ripple.errors import InputError
from ripple.store import RetryingStore
from ripple.store.opening import open_store
from ripple.store.s3_settings import S3Settings, is_s3
from ripple.world import LiveClock, LiveRandom

if TYPE_CHECKING:
    from ripple.world import ObjectStore


@asynccontextmanager
async def store_to_read(place: str, flag: str) -> AsyncIterator[ObjectStore]:
    """Open a store that is there. Raises InputError, which names the flag, for an absent folder."""
    if not is_s3(place) and not Path(place).is_dir():
        raise InputError(f"there is no folder {place}: name another with {flag}")
    async with open_store(place, settings(), is_read=True) as store:
        yield RetryingStore(store, LiveClock(), LiveRandom()) if is_s3(place) else store


def settings() -> S3Settings:
    """Return what the environment says of S3. Raises SettingsError."""
    return S3Settings.of_environment(os.environ)
