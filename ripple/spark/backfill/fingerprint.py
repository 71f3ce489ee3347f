"""What a backfill is of, in 32 hexadecimal digits: one that was interrupted is known by them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import ripple
from ripple.connectors.registry import find

if TYPE_CHECKING:
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.backfill.live import Live
    from ripple.spark.shares import Share, Source

_PROOF = 2
"""How records are told apart: what was found of them otherwise is not gone on with."""


def fingerprint(plan: Plan, history: Source, live: Live, identity: Sequence[str]) -> str:
    """Return digits that differ wherever a checkpoint, or what is proved of it, could.

    A file is known by its place, size and time of change, not by its bytes.
    """
    parts = [
        _PROOF,
        plan.topology_hash,
        ripple.__version__,
        [(one.place, one.partition, one.first, one.end, _stat(one)) for one in history.shares],
        live.until_ns,
        live.partitions,
        live.key,
        [(one.name, one.begins, one.identity) for one in live.inputs],
        list(identity),
    ]
    return blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


def _stat(share: Share) -> tuple[int, int] | None:
    """Return size and time of change of a file; of a log its range tells."""
    if share.partition is not None:
        return None
    path = Path(find(share.place, "source").path)
    if not path.is_file():
        return None
    found = path.stat()
    return found.st_size, found.st_mtime_ns
