"""Checkpoints: a partition's state at a cut, in Arrow files, listed by a fenced manifest.

checkpoints finds, reads, verifies and writes them; format: their files; seal: checksums
manifest    the fenced list of checkpoints; chain: increments, and which checkpoints to keep
choosing    selects a checkpoint, and one of its folds, by name
origin      the starting point of all partitions of a pipeline: nothing, or a backfill
moved       the record that the state has left a store
"""

from __future__ import annotations

from ripple.storage.checkpoint.chain import INCREMENTS_MAX_DEFAULT, without_begun
from ripple.storage.checkpoint.checkpoints import (
    KEEP_DEFAULT,
    Checkpoints,
    Found,
    Owner,
    newest_of_each,
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
    "newest_of_each",
    "partitions",
    "without_begun",
]
