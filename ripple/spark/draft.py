"""A folder of Parquet that tasks fill, and the driver commits atomically.

So tasks write rows themselves, and none cross the JVM.
"""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.connectors.contract import Commit
from ripple.core.errors import OutputError
from ripple.model.schema.logical.columns import as_shown
from ripple.world.live_disk import LiveDisk

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType

DONE = "_SUCCESS"
_NOTHING = Commit({}, "")


@dataclass(frozen=True, slots=True)
class PartFolder:
    """The folder of one output's parts. schema: of the rows, as Spark would have them.

    A part's name and bytes are functions of the share, so a retried task replaces its part by the
    same.
    """

    folder: str
    schema: pa.Schema

    def part(self, stage: int, number: int) -> str:
        """Return the path of a partition's part."""
        return os.path.join(self.folder, f"part-{stage}-{number:05}.parquet")

    def begin(self, stage: int, number: int) -> Part:
        """Begin a part. Raises OutputError."""
        if not os.path.isdir(self.folder):
            raise OutputError(
                f"an executor does not see {os.path.dirname(self.folder)}: name a folder that all "
                "machines have"
            )
        return Part(self.part(stage, number), self.schema)


class Part:
    """Rows of one partition, in a file that appears once it is complete."""

    def __init__(self, path: str, schema: pa.Schema) -> None:
        """Open the file. Raises OutputError."""
        from ripple.connectors.files.parquet.files import ParquetSink  # noqa: PLC0415 - slow to import
        from ripple.connectors.target import open_target  # noqa: PLC0415 - likewise

        self._schema = schema
        self._sink = ParquetSink(open_target(path), schema)

    def add(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Add rows, buffered up to a row group. Raises OutputError."""
        for batch in rows.to_batches() if isinstance(rows, pa.Table) else [rows]:
            columns = [
                column if column.type == field.type else as_shown(column, field.type)
                for column, field in zip(batch.columns, self._schema, strict=True)
            ]
            self._sink.write(pa.RecordBatch.from_arrays(columns, schema=self._schema), _NOTHING)

    def finish(self) -> None:
        """Complete the file. Raises OutputError."""
        self._sink.commit(_NOTHING)


class Draft:
    """A folder being written as ``.NAME.draft``, renamed when complete.

    A context manager: a draft that was not adopted is removed at its end. The draft of a killed
    driver is removed by the next one, since its lock is free.
    """

    def __init__(self, output: str, folder: str, schema: pa.Schema, *, overwrite: bool) -> None:
        """Check the destination. Raises OutputError if it exists, unless it may be replaced."""
        self.output = output
        self._folder = os.path.realpath(folder)
        if os.path.lexists(self._folder) and not overwrite:
            raise OutputError(f"{folder} already exists: name another folder, or --overwrite it")
        parent, name = os.path.split(self._folder)
        self._draft = os.path.join(parent, f".{name}.draft")
        # A unique name: tasks of a killed driver may still be writing.
        self.desk = PartFolder(os.path.join(self._draft, secrets.token_hex(4)), schema)

    def __enter__(self) -> Draft:
        try:
            holder = f"a replay into {self._folder}, process {os.getpid()}"
            self._lock = LiveDisk(self._draft).lock("lock", holder)
            for name in os.listdir(self._draft):
                if name != "lock":
                    shutil.rmtree(os.path.join(self._draft, name))
            os.mkdir(self.desk.folder)
        except OSError as error:
            raise self._failure(error) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        shutil.rmtree(self._draft, ignore_errors=True)
        self._lock.release()

    def adopt(self, reports: Iterable[Mapping[str, Any]]) -> None:
        """Rename the folder, after checking it against the reports. Raises OutputError."""
        whole = f"{self.desk.folder}.whole"
        try:
            os.mkdir(whole)
            for one in reports:
                self._take(whole, one["stage"], one["partition"], one["rows"].get(self.output, 0))
            if not os.listdir(whole):  # an empty part has the columns
                PartFolder(whole, self.desk.schema).begin(0, 0).finish()
            with open(os.path.join(whole, DONE), "x"):
                pass
            before = f"{self.desk.folder}.before"
            with suppress(FileNotFoundError):
                os.rename(self._folder, before)
            os.rename(whole, self._folder)
        except OSError as error:
            raise self._failure(error) from error

    def _take(self, whole: str, stage: int, number: int, rows: int) -> None:
        import pyarrow.parquet as pq  # noqa: PLC0415 - slow to import

        if not rows:
            return
        part = self.desk.part(stage, number)
        try:
            found = pq.read_metadata(part).num_rows
        except FileNotFoundError:
            raise OutputError(
                f"{self._folder} lacks a part that a task has written: name a folder that all "
                "machines have"
            ) from None
        if found != rows:
            raise OutputError(f"{part} has {found} rows, and its task reported {rows}")
        os.rename(part, os.path.join(whole, os.path.basename(part)))

    def _failure(self, error: OSError) -> OutputError:
        return OutputError(f"cannot write {self._folder}: {error.strerror or error}")
