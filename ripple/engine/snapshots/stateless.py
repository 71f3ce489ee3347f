"""The state of rows that follow from others: a table without rows, which says that they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.snapshots.internal import internal
from ripple.model.keys.space import key_columns, key_space

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.model.schema.types import Field

    Ints = npt.NDArray[np.int64]

_NONE = np.empty(0, np.int64)


class Stateless:
    """No state by slot, under the key of the rows."""

    def __init__(self, key: Sequence[Field]) -> None:
        """Have no state of rows with this key."""
        self._space = key_space(key)

    def dump_rows(self, slots: Ints) -> dict[str, pa.Array]:
        """Return no rows, as Arrow columns."""
        del slots
        return {**key_columns(self._space, _NONE), internal("shown"): pa.array([], pa.bool_())}

    def dump_marks(self, slots: Ints) -> dict[str, pa.Array]:
        """Return further columns: none."""
        del slots
        return {}

    @property
    def columns(self) -> list[str]:
        """The names of dumped columns."""
        return list(self.dump_rows(_NONE))
