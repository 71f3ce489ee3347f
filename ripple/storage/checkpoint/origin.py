"""The starting point of the partitions of a pipeline: nothing, or backfilled history.

One object records it for all of them, and the first put wins: by the first owner that finds no
checkpoint, or by a backfill when all its files are stored. So either every partition begins from
history or none does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ripple.core.errors import LimitError
from ripple.storage.checkpoint.errors import CheckpointError
from ripple.storage.checkpoint.format import Checkpoint, checkpoint_of, fields_of
from ripple.storage.fenced import DamagedError, Entry, decode_entry, object_in

if TYPE_CHECKING:
    from ripple.world.ports import ObjectStore

NAME = "origin.json"
BYTES_MAX = 64 << 20

ORIGIN = "origin"
"""The note of checkpoints written after a backfill: its fingerprint."""

HISTORY_EPOCH = 0
"""The epoch of a backfill's checkpoints; those of owners are higher."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The starting point. backfill: its fingerprint, "" for nothing.

    checkpoints: the backfill's, one for each partition, under HISTORY_EPOCH. Their files are
    outside the partitions' folders, so that no owner sweeps them.
    """

    backfill: str = ""
    checkpoints: tuple[Checkpoint, ...] = ()

    def of(self, partition: int) -> tuple[Checkpoint, ...]:
        """Return the checkpoint from which a partition begins, if any. Raises CheckpointError."""
        found = tuple(one for one in self.checkpoints if one.partition == partition)
        if self.checkpoints and not found:
            raise CheckpointError(
                f"history was backfilled into {len(self.checkpoints)} partitions of pipeline "
                f"{self.checkpoints[0].pipeline!r}, and this is partition {partition}: run it with "
                "as many, or backfill into another store with --partitions"
            )
        return found


NOTHING = Origin()


class _Content:
    """Origins as the fields of an entry."""

    def to_fields(self, content: Origin) -> Mapping[str, Any]:
        return {
            "backfill": content.backfill,
            "checkpoints": [fields_of(one) for one in content.checkpoints],
        }

    def from_fields(self, fields: Mapping[str, Any]) -> Origin:
        return Origin(fields["backfill"], tuple(map(checkpoint_of, fields["checkpoints"])))


_CONTENT = _Content()


def folder_of(pipeline: str) -> str:
    """Return the common prefix of the names of a pipeline's objects."""
    if not pipeline:
        raise CheckpointError("a pipeline without a name has no checkpoints")
    # Dots tell files from folders in a store on disk.
    return f"{quote(pipeline, safe='').replace('.', '%2E')}/"


async def origin_in(store: ObjectStore, pipeline: str) -> Origin | None:
    """Return the starting point of a pipeline, None if it has not begun. Raises DamagedError."""
    name = f"{folder_of(pipeline)}{NAME}"
    data = await object_in(store, name, length_max=BYTES_MAX)
    if data is None:
        return None
    try:
        return decode_entry(data, name, _CONTENT).content
    except DamagedError as error:
        raise DamagedError(
            f"{error}: restore it; or, if the pipeline was never backfilled by ripple spark "
            "backfill, remove it, and the next run writes it again"
        ) from error


async def begin(store: ObjectStore, pipeline: str, origin: Origin) -> Origin:
    """Record ``origin`` unless the pipeline has begun; return its starting point.

    Raises StoreError, after which it may be repeated, and LimitError when it is too large to be
    read back.
    """
    name = f"{folder_of(pipeline)}{NAME}"
    data = Entry(1, origin.backfill, "", origin, _CONTENT).encoded
    if len(data) > BYTES_MAX:
        raise LimitError(
            f"{name} would take {len(data)} bytes, more than {BYTES_MAX}: use fewer partitions"
        )
    await store.put_if_absent(name, data)
    found = await origin_in(store, pipeline)
    assert found is not None, "an object that was put is there"
    return found
