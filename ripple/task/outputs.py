"""The outputs of a task: each is given the changes that it lacks, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.connectors.contract import Commit
from ripple.model.schema.exported import as_arrow
from ripple.model.schema.logical.showing import map_names, showing

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    import pyarrow as pa

    from ripple.connectors.commit_group import CommitGroup, OutputStatus
    from ripple.core.cut import Cut
    from ripple.engine.machine import Changes
    from ripple.engine.machine.partition import Partition
    from ripple.model.schema.exported import Made, Part
    from ripple.model.schema.logical.showing import Showing


class Outputs:
    """The outputs of an opened group, with the rows of the partition."""

    def __init__(self, group: CommitGroup, standings: Mapping[str, OutputStatus]) -> None:
        """Take over the group's committed cuts."""
        self._group = group
        self.standings = standings
        self.rows_out = 0
        self._showing: dict[str, Showing | None] = {}

    def write(self, changes: Changes, partition: Partition) -> None:
        """Give each output the changes that it lacks."""
        digests: Mapping[str, str] = {}
        for output, rows in changes.outputs.made.items():
            standing = self.standings.get(output)
            if standing is None or not self._lacks(output, rows, changes.cut):
                continue
            self.rows_out += rows.num_rows
            if standing.records_cut:
                digests = digests or partition.digests
            self._group.write(
                output,
                self.shown(output, rows, partition),
                Commit(changes.cut, digests.get(output, "")),
            )

    def _lacks(self, output: str, rows: Made | Part, cut: Cut) -> bool:  # noqa: ARG002 - for others
        """Return whether an output is to be given these rows, which reach ``cut``."""
        return rows.num_rows > 0

    def shown(self, output: str, rows: Made | Part | pa.RecordBatch, partition: Partition) -> Any:
        """Return an output's rows as its sink takes them."""
        if output not in self._showing:
            standing, plan = self.standings[output], partition.plan
            written = plan.output(output)
            fields = () if standing.takes_stored else written.fields
            key = (one.name for one in plan.key_of(written))
            maps = map_names(fields, key) if standing.takes_maps else ()
            self._showing[output] = showing(fields, maps)
        show = self._showing[output]
        if show is not None:
            return show(as_arrow(rows))
        return rows if self.standings[output].takes_made else as_arrow(rows)

    def correct(self, output: str, rows: pa.RecordBatch, partition: Partition) -> None:
        """Write corrections of an output at the partition's cut."""
        if rows.num_rows:
            self.rows_out += rows.num_rows
            self._group.write(
                output,
                self.shown(output, rows, partition),
                Commit(partition.cut, partition.digests[output]),
            )

    @property
    def commits_beside(self) -> bool:
        """Whether more may be written while a commit is under way."""
        return self._group.commits_beside

    def commit(self, partition: Partition) -> Coroutine[Any, Any, None]:
        """Return a coroutine that makes all written rows durable, with the present cut.

        It raises OSError.
        """
        cut, digests = partition.cut, partition.digests
        watermarks_ns = partition.watermarks_ns
        return self._group.commit(
            {output: Commit(cut, digests[output], watermarks_ns) for output in self.standings}
        )
