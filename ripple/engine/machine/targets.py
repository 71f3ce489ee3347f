"""The target partitions of the records of a repartitioned source.

Sender and receivers ask the same, of the same rows: so a record with several targets is counted in
each of them by its own rows, and shown in one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.edges.edge_changes import targets_of
from ripple.engine.operators.arrow_types import arrow_column, arrow_fields, null_rows
from ripple.model.pipeline.nodes import Explode, FlatMap, Union

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from ripple.engine.machine.way import Keyed, Way
    from ripple.engine.operators.rows import Rows
    from ripple.model.pipeline.new_division import NewDivision

    Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Targets:
    """The partitions of the first stage, by Kafka's hash of fields of a row.

    A row without one of these fields, and a record that reaches outputs of events alone, may be in
    any: its offset chooses.

    fields: the hashed ones, by reader.
    """

    fields: NewDivision
    partitions: int

    def of_rows(self, taken: Keyed, offsets: Ints) -> Ints:
        """Return the partition of each row. offsets: of the batch's records."""
        rows, key = taken.rows, self.fields.of(taken.reader)
        kinds = {field.name: field for field in arrow_fields(taken.key)}
        schema = pa.schema([kinds[name] for name in key])
        columns = [arrow_column(rows.columns[one.name], one.type) for one in schema]
        keys = pa.RecordBatch.from_arrays(columns, schema=schema)
        nulls = null_rows(columns)
        if nulls is None:
            return targets_of(keys, key, self.partitions)
        numbers = self.of_records(offsets[rows.origins])
        numbers[~nulls] = targets_of(keys.filter(pa.array(~nulls)), key, self.partitions)
        return numbers

    def of_records(self, offsets: Ints) -> Ints:
        """Return the partition of each record without a row for a key."""
        return offsets % self.partitions

    def pairs(
        self,
        keyed: Iterable[tuple[Rows, Ints]],
        shown: Iterable[Rows],
        offsets: Ints,
    ) -> tuple[Ints, Ints]:
        """Return records of a batch, by their indexes, and a partition that each goes to.

        keyed: rows with keys, and their partitions. shown: rows of outputs of events. A record is
        there once for each of its partitions, the records in their order.
        """
        found = [rows.origins * self.partitions + numbers for rows, numbers in keyed]
        pairs = np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)
        alone = np.zeros(len(offsets), np.bool_)
        for rows in shown:
            alone[rows.origins] = True
        alone[pairs // self.partitions] = False
        if alone.any():
            at = np.flatnonzero(alone)
            others = at * self.partitions + self.of_records(offsets[at])
            pairs = np.sort(np.concatenate([pairs, others]))
        return pairs // self.partitions, pairs % self.partitions


def goes_to_one(way: Way) -> bool:
    """Return whether each record of a way has one partition: one row comes to one key at most."""
    readers: Sequence[object] = (*way.sides, *way.folds)
    several = FlatMap | Explode | Union
    return len(readers) <= 1 and not any(isinstance(one, several) for one in way.steps)
