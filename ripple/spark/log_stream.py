"""A topic as a stream of Spark: a micro-batch is a range of offsets of each partition."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from ripple.core.errors import InputError
from ripple.spark.log_table import LogTable, open_topic
from ripple.storage.log import PartitionReader
from ripple.storage.log_uri import PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.spark.log_table import Split


@dataclass(frozen=True, slots=True)
class LogStream:
    """The partitions of a log, from their first splits on.

    Invariant: records before an end that ``ends`` has returned never change, so a micro-batch that
    is repeated has the same rows.

    grows: whether to read additional partitions of the topic, too, from their first records.
    """

    table: LogTable
    grows: bool = False

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        """Plan the reading of a log. Raises InputError."""
        if any(name.lower() == "to" for name in options):
            raise InputError("a stream has no end: leave the option 'to' out, or use spark.read")
        table, asked = LogTable.of(options), {name.lower(): one for name, one in options.items()}
        _, only = open_topic(asked["path"])
        return cls(table, only is None and "partitions" not in asked)

    def begin(self) -> dict[str, int]:
        """Return the first offset of each partition, by its number."""
        return {str(one.partition): one.first for one in self.table.splits}

    def ends(self) -> dict[str, int]:
        """Return the present ends. Raises InputError where the log cannot be read."""
        found = {}
        for one in self._splits():
            topic, _ = open_topic(one.place)
            with PartitionReader(topic, one.partition) as reader:
                found[str(one.partition)] = reader.range()[1]
        return found

    def splits(self, start: Mapping[str, int], end: Mapping[str, int]) -> list[Split]:
        """Return the ranges of a micro-batch that have records.

        start: partitions that it lacks begin where the stream does. Raises InputError for a log
        that ends before an offset which a query has read.
        """
        found = []
        for one in self._splits():
            number = str(one.partition)
            first, until = start.get(number, one.first), end.get(number, one.first)
            if until < first:
                raise InputError(
                    f"{PREFIX}{one.place}/{number} ends at offset {until}, and the query has read "
                    f"to {first}: the log is another one, so begin the query anew, with another "
                    "checkpointLocation"
                )
            if first < until:
                found.append(replace(one, first=first, end=until))
        return found

    def _splits(self) -> tuple[Split, ...]:
        splits = self.table.splits
        if not self.grows:
            return splits
        topic, _ = open_topic(splits[0].place)
        added = range(len(splits), topic.partitions)
        return (*splits, *(replace(splits[0], partition=one, first=0, end=0) for one in added))
