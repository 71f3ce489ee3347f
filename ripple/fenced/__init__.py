"""The put-if-absent sequence: who adds to it next is decided by the store, once and for all."""

from __future__ import annotations

from ripple.fenced.chain import ENTRIES_KEPT, Chain, Reading
from ripple.fenced.entry import BYTES_MAX, Content, Entry, decode_entry
from ripple.fenced.errors import ChainError, DamagedError, FencedError
from ripple.fenced.journal import Added, Journal
from ripple.fenced.stored import object_in

__all__ = [
    "BYTES_MAX",
    "ENTRIES_KEPT",
    "Added",
    "Chain",
    "ChainError",
    "Content",
    "DamagedError",
    "Entry",
    "FencedError",
    "Journal",
    "Reading",
    "decode_entry",
    "object_in",
]
