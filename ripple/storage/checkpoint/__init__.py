"""Checkpoints: a partition's state at a cut, in files that anything can open, behind a fence.

checkpoints found, read, checked, and written as their owner; format: as files; seal: checksums
manifest    the list of them, and the fence around it; chain: which need others, what to keep
choosing    one of them, and of its folds, by name
origin      what all partitions of a pipeline begin from: nothing, or history
"""

from __future__ import annotations

from ripple.storage.checkpoint.chain import INCREMENTS_MAX_DEFAULT
from ripple.storage.checkpoint.checkpoints import (
    KEEP_DEFAULT,
    Checkpoints,
    Found,
    Owner,
    partitions,
)
from ripple.storage.checkpoint.choosing import fold_named, named
from ripple.storage.checkpoint.errors import CheckpointError
from ripple.storage.checkpoint.format import (
    FORMAT,
    Checkpoint,
    Part,
    bare,
    decode,
    decode_file,
    encode,
    encode_file,
)

__all__ = [
    "FORMAT",
    "INCREMENTS_MAX_DEFAULT",
    "KEEP_DEFAULT",
    "Checkpoint",
    "CheckpointError",
    "Checkpoints",
    "Found",
    "Owner",
    "Part",
    "bare",
    "decode",
    "decode_file",
    "encode",
    "encode_file",
    "fold_named",
    "named",
    "partitions",
]
