"""Sampling of keys: all records are read and validated, and those of other keys then skipped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.core.errors import InputError
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.model.keys.partitioner import partition_numbers

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.engine.machine import Engine
    from ripple.engine.operators.rows import Rows
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.oracle import Table

_BUCKETS = (1 << 31) - 1
# Inputs are partitioned by the lowest bits of the same hash.
_LOW = 1 << 12


@dataclass(frozen=True, slots=True)
class Sample:
    """One of ``of`` parts of all keys of a pipeline's first fold, number ``at`` modulo that."""

    of: int
    at: int

    @classmethod
    def of_share(cls, text: str) -> Sample:
        """Return the first sample of a share such as ``1%`` or ``0.05``. Raises InputError."""
        is_percent = text.endswith("%")
        try:
            share = float(text.rstrip("%")) / (100 if is_percent else 1)
        except ValueError:
            share = 0
        if not 0 < share <= 1:
            raise InputError(f"a sample is a share of the keys, such as 1% or 0.01, not {text!r}")
        return cls(round(1 / share), 0)

    def mask(self, keys: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Return a mask of the sample's keys; columns: the fields of the key."""
        if not keys.num_columns:
            return np.full(keys.num_rows, self.at % self.of == 0)
        numbers = partition_numbers(keys, keys.schema.names, _BUCKETS)
        found: npt.NDArray[np.bool_] = numbers // _LOW % self.of == self.at % self.of
        return found

    def kept(self, table: Table, plan: Plan) -> Table:
        """Return the rows of the sample's keys in a table of the first fold."""
        fields = plan.folds[0].key
        rows: list[Any] = [{one.name: row[one.name] for one in fields} for row in table.values()]
        if not rows or not fields:
            return table if self.at % self.of == 0 else {}
        mask = self.mask(pa.RecordBatch.from_pylist(rows, pa.schema(arrow_fields(fields))))
        return {key: row for (key, row), kept in zip(table.items(), mask, strict=True) if kept}

    def engine(self, kind: type[Engine]) -> type[Engine]:
        """Return an engine class that folds only the sample's keys, with the watermarks of all."""
        sample = self

        class Sampled(kind):  # type: ignore[misc,valid-type]
            def __init__(self, plan: Plan, *rest: Any, **more: Any) -> None:
                super().__init__(plan, *rest, **more)
                admit, fields = self._fold.admit, plan.folds[0].key
                schema = pa.schema(arrow_fields(fields))

                def admit_sampled(rows: Rows) -> None:
                    admit(rows)
                    columns = [rows.columns.arrow(one.name) for one in fields]
                    keys = pa.RecordBatch.from_arrays(columns, schema=schema) if columns else None
                    if keys is None:
                        keys = pa.RecordBatch.from_struct_array(pa.array([{}] * rows.count))
                    rows.keep(sample.mask(keys))

                self._fold.admit, self._admits_all = admit_sampled, False

        return Sampled
