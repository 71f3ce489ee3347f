"""Checkpoints: a partition's state at a cut, in files that anything can open, behind a fence."""

from __future__ import annotations

from ripple.checkpoint.chain import INCREMENTS_MAX_DEFAULT
from ripple.checkpoint.checkpoints import KEEP_DEFAULT, Checkpoints, Found, Owner, partitions
from ripple.checkpoint.errors import CheckpointError, DamagedError, FencedError
from ripple.checkpoint.format import (
    FORMAT,
    Checkpoint,
    Part,
    decode,
    decode_file,
    encode,
    encode_file,
)
from ripple.checkpoint.stores import DiskStore, MemoryStore
from ripple.checkpoint.wrappers import RetryingStore, RetrySettings, StoreCall, TimedStore

__all__ = [
    "FORMAT",
    "INCREMENTS_MAX_DEFAULT",
    "KEEP_DEFAULT",
    "Checkpoint",
    "CheckpointError",
    "Checkpoints",
    "DamagedError",
    "DiskStore",
    "FencedError",
    "Found",
    "MemoryStore",
    "Owner",
    "Part",
    "RetrySettings",
    "RetryingStore",
    "StoreCall",
    "TimedStore",
    "decode",
    "decode_file",
    "encode",
    "encode_file",
    "partitions",
]
