"""Put-if-absent sequences: the store decides, atomically, which writer adds the next object."""

from __future__ import annotations

from ripple.storage.fenced.chain import ENTRIES_KEPT, Chain, Reading
from ripple.storage.fenced.entry import BYTES_MAX, Content, Entry, decode_entry
from ripple.storage.fenced.errors import ChainError, DamagedError, FencedError
from ripple.storage.fenced.journal import Added, Journal
from ripple.storage.fenced.stored import object_in

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
