"""The fingerprint of a backfill's inputs, by which an interrupted one is recognized."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ripple
from ripple.connectors.registry import find

if TYPE_CHECKING:
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.backfill.live import Live
    from ripple.spark.portions import Sources
    from ripple.spark.shares import Share

_PROOF = 2
"""The version of the comparison of records: results of another one are not resumed."""


def fingerprint(
    plan: Plan,
    history: Sources,
    live: Live,
    identity: Sequence[str],
    counts: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Return 32 hexadecimal digits over all facts that determine the checkpoints and the proof.

    A file is identified by its path, size and time of change, not by its bytes. counts: of
    DataFrames, with the digests of their rows as identity.
    """
    parts = [
        _PROOF,
        plan.topology_hash,
        ripple.__version__,
        [(one.place, one.partition, one.first, one.end, _stat(one)) for one in history.shares],
        live.until_ns,
        live.partitions,
        live.sources[0].key if len(live.sources) == 1 else [one.key for one in live.sources],
        [(one.name, one.begins, one.identity) for one in live.inputs],
        list(identity),
    ]
    if counts:
        parts.append([{**one, "letters": None} for one in counts])
    return blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()


def _stat(share: Share) -> tuple[int, int] | None:
    """Return size and time of change of a file; None for a log, identified by its range."""
    if share.partition is not None:
        return None
    path = Path(find(share.place, "source").path)
    if not path.is_file():
        return None
    found = path.stat()
    return found.st_size, found.st_mtime_ns
