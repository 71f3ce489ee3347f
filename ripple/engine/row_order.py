"""The order in which changed rows are handed out: of two engines at one cut, the same."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ripple.keys.space import Hashes, KeySpace, part_of
from ripple.pipeline.plan import WINDOW_FIELD_NAMES
from ripple.schema.types import Int64

Ints = npt.NDArray[np.int64]

_START = WINDOW_FIELD_NAMES[0]


class RowOrder:
    """By window start, if the key has one, then by the hash of the key, then by the key itself.

    A function of the keys alone: slots are numbered anew by every restore, and the order in which
    rows were touched depends on batches. A hash, because sorting numbers is many times cheaper
    than sorting text.
    """

    def __init__(self, keys: KeySpace) -> None:
        self._keys = keys
        names = [field.name if isinstance(field.type, Int64) else "" for field in keys.fields]
        self._start_at = names.index(_START) if _START in names else None

    def positions(self, slots: Ints, hashes: Hashes) -> Ints:
        """Return the positions of ``slots``, whose keys have these hashes, in order: int64[n]."""
        order: Ints = np.argsort(hashes)
        ties = hashes[order[1:]] == hashes[order[:-1]]
        if ties.any():
            order = self._by_key(slots, hashes)
        if self._start_at is not None:
            starts = part_of(self._keys, slots, self._start_at).to_numpy()[order]
            if (starts[1:] < starts[:-1]).any():
                order = order[np.argsort(starts, kind="stable")]
        return order

    def _by_key(self, slots: Ints, hashes: Hashes) -> Ints:
        """Two keys have one hash, which is rare: compare the keys."""
        columns = [pa.array(hashes), *self._keys.arrays(slots), pa.array(np.arange(len(slots)))]
        table = pa.table(columns, [str(at) for at in range(len(columns))])
        *by, position = table.column_names
        order: Ints = (
            table.sort_by([(name, "ascending") for name in by]).column(position).to_numpy()
        )
        return order
