"""Inputs of a replay that its tasks read themselves, as packets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ripple.spark.file_states import FileStates
from ripple.spark.fold import laid_out
from ripple.spark.work import packets_from

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ripple.model.pipeline.plan import Plan
    from ripple.spark.gather import Gather
    from ripple.spark.parcel import Parcel
    from ripple.spark.portions import Sources
    from ripple.spark.progress import Reporter
    from ripple.spark.task_results import WantedResults


@dataclass(frozen=True, slots=True)
class TaskReading:
    """Logs, topics and files, each task with a portion of them.

    files: as they were when they were found.
    """

    spark: SparkSession
    plan: Plan
    sources: Sources
    files: FileStates

    @property
    def tasks(self) -> int:
        """The number of tasks that read."""
        return len(self.sources.portions(self.plan))

    @property
    def rows(self) -> int | None:
        """How many records they read, None where that is not known."""
        return self.sources.rows

    @property
    def together_why(self) -> str | None:
        """Why one task reads all, None where it need not."""
        return self.sources.together_why(self.plan)

    def packets(
        self, parcel: Parcel, wanted: WantedResults, reporter: Reporter | None
    ) -> tuple[DataFrame, list[Gather]]:
        """Return the packets of the tasks that read, and the gathers that follow.

        Raises InputError for a file that has changed since it was found.
        """
        self.files.check_unchanged(FileStates.of(self.sources))
        jobs, gathers = laid_out(parcel, self.plan, self.sources, wanted, reporter)
        return packets_from(self.spark, jobs, [job.portion.rows for job in jobs]), gathers
