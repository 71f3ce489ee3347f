"""Checkpoint files: a snapshot as Arrow IPC files, readable by any Arrow library.

A fold's table is one file, named after the fold, because an Arrow file has one schema and a user
who opens it wants a table. Its schema's metadata hold the description of the checkpoint
(``ripple.checkpoint``, JSON), the version of this format (``ripple.format``), and a checksum over
the whole file (``ripple.checksum``). Columns: the fold's key, then its accumulators, one row per
key.

The file of an increment holds the rows that changed since the checkpoint ``base``, and the removed
keys: between key and accumulators, ``ripple.op`` is 0 for a current row and 2 for a removed key,
with null accumulators.

Promise: from format 3 on, which is the first that a release writes, a version of Ripple reads every
format up to its own; tests/data has a file of each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from hashlib import blake2b
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from ripple.core.compact_cut import loaded, stored
from ripple.engine.snapshots.snapshot import Snapshot
from ripple.storage.checkpoint.errors import CheckpointError
from ripple.storage.checkpoint.seal import UNSEALED, seal, sealed_digest
from ripple.storage.fenced import DamagedError

FORMAT = 3
OLDEST_FORMAT = 3
# Instead of a node's key: final rows for the stage with the next number. For another one that
# follows, its number is added.
RETAINED = "ripple/retained#"

_UNUSUAL = re.compile(r"[^A-Za-z0-9_-]")
# In the calling thread: it works concurrently with intake, and waking others costs more than it
# saves.
_WRITING = pyarrow.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
_READING = pyarrow.ipc.IpcReadOptions(use_threads=False)


@dataclass(frozen=True, slots=True)
class Part:
    """One fold's table: its file in the store, with its expected length and checksum."""

    node_key: str
    object_name: str
    rows: int
    length_bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A partition's state at a cut, as the manifest names it.

    name: unique, the owner's epoch first. written_ns: wall clock, for people. The rest as in
    ``Snapshot``; retained rows are the part RETAINED. base: the checkpoint to which the parts are
    an increment, None for a full one.
    """

    name: str
    pipeline: str
    topology_hash: str
    partition: int
    epoch: int
    written_ns: int
    cut: Mapping[str, int]
    watermarks_ns: Mapping[str, int]
    counters: Mapping[str, int]
    digests: Mapping[str, tuple[int, int]]
    parts: tuple[Part, ...]
    base: str | None = None
    nodes: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    stage: int | None = None
    epochs: Mapping[str, int] = field(default_factory=dict)
    ends_ns: Mapping[str, int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Keys, windows and groups of all folds."""
        return sum(part.rows for part in self.parts)

    @property
    def length_bytes(self) -> int:
        """Bytes of all files."""
        return sum(part.length_bytes for part in self.parts)


def fold_name(node_key: str) -> str:
    """Return a fold's name in its pipeline; a node's key is PIPELINE/.../NAME#DIGEST."""
    return node_key.rpartition("#")[0].rpartition("/")[2]


def fields_of(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return a checkpoint as JSON fields."""
    parts = [_own_fields(part) for part in checkpoint.parts]
    held = _own_fields(checkpoint) | {"cut": stored(checkpoint.cut), "parts": parts}
    if not checkpoint.ends_ns:  # as nearly always
        del held["ends_ns"]
    return held


def checkpoint_of(held: dict[str, Any]) -> Checkpoint:
    """Return the checkpoint from the output of ``fields_of`` of this release or an earlier one."""
    digests = {name: (whole, live) for name, (whole, live) in held["digests"].items()}
    parts = tuple(Part(**part) for part in held["parts"])
    nodes = tuple(held.get("nodes", ()))  # files written by the first release have none
    cut = dict(sorted(loaded(held["cut"]).items()))
    return Checkpoint(**held | {"cut": cut, "digests": digests, "parts": parts, "nodes": nodes})


def _own_fields(value: Checkpoint | Part) -> dict[str, Any]:
    return {one.name: getattr(value, one.name) for one in fields(value)}


def encode(
    snapshot: Snapshot,
    name: str,
    epoch: int,
    written_ns: int,
    prefix: str = "",
    *,
    base: str | None = None,
) -> tuple[Checkpoint, dict[str, bytearray]]:
    """Return a checkpoint and its files by object name, each below ``prefix``.

    base: the base of an increment. Pure and slow (it compresses): call it in a thread.
    """
    assert (snapshot.since is None) == (base is None), "changes have a base, and only they"
    about: dict[str, Any] = {
        "name": name,
        "base": base,
        "pipeline": snapshot.pipeline,
        "topology_hash": snapshot.topology_hash,
        "partition": snapshot.partition,
        "epoch": epoch,
        "written_ns": written_ns,
        "cut": dict(snapshot.cut),
        "watermarks_ns": dict(snapshot.watermarks_ns),
        "counters": dict(snapshot.counters),
        "digests": dict(snapshot.digests),
        "nodes": snapshot.nodes,
        "notes": dict(snapshot.notes),
        "stage": snapshot.stage,
        "epochs": dict(snapshot.epochs),
    }
    if snapshot.ends_ns:
        about["ends_ns"] = dict(snapshot.ends_ns)
    tables = dict(snapshot.tables)
    for stage, rows in snapshot.retained.items():
        tables[_retained_for(stage, snapshot.stage)] = rows
    files: dict[str, bytearray] = {}
    cut, parts = stored(snapshot.cut), []
    for position, (node_key, table) in enumerate(tables.items()):
        fold = _UNUSUAL.sub("_", fold_name(node_key))
        object_name = f"{prefix}{name}-{position}-{fold}.arrow"
        data, digest = encode_file(table, about | {"cut": cut, "node_key": node_key})
        files[object_name] = data
        parts.append(Part(node_key, object_name, table.num_rows, len(data), digest))
    return Checkpoint(**about, parts=tuple(parts)), files


def decode(
    checkpoint: Checkpoint, files: Mapping[str, bytes], *, is_verified: bool = True
) -> Snapshot:
    """Return the snapshot in these files, an increment if the checkpoint has a base.

    Raises DamagedError naming the file.
    """
    tables = {}
    for part in checkpoint.parts:
        data = files[part.object_name]
        about, table = decode_file(data, part.object_name, part.digest, is_verified=is_verified)
        if about["node_key"] != part.node_key or table.num_rows != part.rows:
            raise DamagedError(f"{part.object_name} is not the file that the manifest names")
        tables[part.node_key] = table
    number = (checkpoint.stage or 0) + 1
    retained = {
        int(key.removeprefix(RETAINED) or number): tables.pop(key)
        for key in list(tables)
        if key.startswith(RETAINED)
    }
    return replace(bare(checkpoint), tables=tables, retained=retained)


def _retained_for(stage: int, sender: int | None) -> str:
    """Return the part with the final rows that the stage ``sender`` retains for another."""
    return RETAINED if stage == (sender or 0) + 1 else f"{RETAINED}{stage}"


def bare(checkpoint: Checkpoint) -> Snapshot:
    """Return the snapshot with empty tables, from the manifest alone."""
    nothing = pa.table({})
    return Snapshot(
        pipeline=checkpoint.pipeline,
        topology_hash=checkpoint.topology_hash,
        partition=checkpoint.partition,
        cut=checkpoint.cut,
        watermarks_ns=checkpoint.watermarks_ns,
        counters=checkpoint.counters,
        digests=checkpoint.digests,
        tables={
            part.node_key: nothing
            for part in checkpoint.parts
            if not part.node_key.startswith(RETAINED)
        },
        nodes=checkpoint.nodes,
        notes=checkpoint.notes,
        stage=checkpoint.stage,
        epochs=checkpoint.epochs,
        ends_ns=checkpoint.ends_ns,
        since=None if checkpoint.base is None else 0,
    )


def encode_file(table: pa.Table, about: Mapping[str, Any]) -> tuple[bytearray, str]:
    """Return one sealed file and its checksum. about: its description, written as JSON."""
    about = {**about, "layout_hash": _layout_hash(table)}
    metadata = {
        "ripple.format": str(FORMAT),
        "ripple.checksum": UNSEALED,
        "ripple.checkpoint": json.dumps(about, sort_keys=True),
    }
    sink = pa.BufferOutputStream()
    schema = table.schema.with_metadata(metadata)
    with pyarrow.ipc.new_file(sink, schema, options=_WRITING) as writer:
        writer.write_table(table.replace_schema_metadata(metadata))
    data = bytearray(sink.getvalue())
    return data, seal(data)


def decode_file(
    data: bytes, name: str, digest: str | None = None, *, is_verified: bool = True
) -> tuple[dict[str, Any], pa.Table]:
    """Return the description in one file, and its table.

    The checksum is verified first; it must be ``digest``, the manifest's, if that is given.
    ``is_verified`` is False only in tests of the tests. Raises DamagedError, or CheckpointError for
    a newer format.
    """
    if is_verified:
        _verify(data, name, digest)
    table = pyarrow.ipc.open_file(pa.BufferReader(data), options=_READING).read_all()
    table.validate(full=True)
    metadata = table.schema.metadata
    version = int(metadata[b"ripple.format"])
    if version > FORMAT:
        raise CheckpointError(
            f"{name} has format {version}, this version of Ripple reads up to {FORMAT}: upgrade it"
        )
    if version < OLDEST_FORMAT:
        raise CheckpointError(
            f"{name} has format {version}, which no release wrote: begin with another "
            "--checkpoint-dir and other outputs"
        )
    about: dict[str, Any] = json.loads(metadata[b"ripple.checkpoint"])
    return about, table.replace_schema_metadata(None)


def _verify(data: bytes, name: str, digest: str | None) -> None:
    try:
        own = sealed_digest(data)
    except DamagedError as error:
        raise DamagedError(f"{name} is damaged: {error}") from None
    if digest is not None and own != digest:
        raise DamagedError(f"{name} is not the file that the manifest names: it was replaced")


def _layout_hash(table: pa.Table) -> str:
    """Return 16 hexadecimal digits that identify the names and types of columns."""
    columns = [[field.name, str(field.type)] for field in table.schema]
    return blake2b(json.dumps(columns).encode(), digest_size=8).hexdigest()
