"""Checks that records are in the partitions of their keys.

Two partitions that have the same key would each show a row for it, and a later stage would add up
both. So each key that is new is looked at, once; records of known keys cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.core.errors import InputError
from ripple.engine.operators.arrow_types import arrow_column, arrow_fields
from ripple.model.keys.partitioner import partition_numbers
from ripple.model.pipeline.input_names import source_of
from ripple.model.pipeline.nodes import FlatMap, Map

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.engine.operators.rows import Rows
    from ripple.model.pipeline.nodes import EventNode, Fields, Fold
    from ripple.model.pipeline.plan import Plan
    from ripple.model.pipeline.waiting_nodes import Holding


_OR_DIVIDE = ", or repartition the records, with .partition(..., via='log')"


@dataclass(frozen=True, slots=True)
class Division:
    """Records of a source are divided among ``partitions`` by the murmur2 of their ``key``.

    numbers: per input, which of them it is.
    """

    key: tuple[str, ...]
    numbers: Mapping[str, int]
    partitions: int

    def tells(self, plan: Plan) -> bool:
        """Return whether it knows the partition of each key of folds and nodes that hold rows.

        Not where a map comes first: it may make other keys, each still in one partition.
        """
        nodes: tuple[Fold | Holding, ...] = plan.folds[:1]
        if not plan.is_chain:
            nodes = *plan.holding, *plan.event_folds
        keys = [{field.name for field in node.key} for node in nodes if self._leads(plan, node)]
        has_map = any(
            isinstance(step, Map | FlatMap) and self._leads(plan, step) for step in plan.steps
        )
        return bool(self.key) and all(set(self.key) <= key for key in keys) and not has_map

    def _leads(self, plan: Plan, node: EventNode | Fold) -> bool:
        """Return whether records of the source come to a node."""
        return source_of(plan, next(iter(self.numbers))) in plan.sources_of(node.name)

    def check(self, name: str, rows: Rows, key: Fields, *, divides: bool = True) -> None:
        """Raise InputError unless all these rows belong to their input's partition, by their key.

        A null in the key may be in any. divides: whether records could be repartitioned.
        """
        kinds = {field.name: field for field in arrow_fields(key)}
        schema = pa.schema([kinds[field] for field in self.key])
        keys = pa.RecordBatch.from_arrays(
            [arrow_column(rows.columns[field.name], field.type) for field in schema], schema=schema
        )
        keys = keys.drop_null()
        numbers = partition_numbers(keys, self.key, self.partitions)
        wrong = np.flatnonzero(numbers != self.numbers[name])
        if not len(wrong):
            return
        row = int(wrong[0])
        named = ", ".join(repr(column[row].as_py()) for column in keys.columns)
        by = ", ".join(self.key)
        raise InputError(
            f"the {by} {named} is in {name}, which is partition {self.numbers[name]} of the input, "
            f"and Kafka's partitioner (murmur2 of {by}, {self.partitions} partitions) has it in "
            f"{numbers[row]}: the writer of this record has chosen the partition in another way, "
            "so the key may be in two partitions, of which each would have a row for it. Let all "
            "writers partition alike (ripple log append does; librdkafka with partitioner="
            f"murmur2_random){_OR_DIVIDE if divides else ''}"
        )
