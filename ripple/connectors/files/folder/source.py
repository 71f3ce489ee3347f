"""The records of several files as one source."""

from __future__ import annotations

import os
from bisect import bisect_right
from typing import TYPE_CHECKING

from ripple.connectors.cutting import recut
from ripple.connectors.files.csv.dialect import divided, has_options
from ripple.connectors.files.folder.listing import data_file, files_at
from ripple.connectors.files.folder.one_file import FileReader, format_of
from ripple.connectors.files.remote.address import checked
from ripple.connectors.files.remote.contract import version_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ripple.connectors.connector import Reading
    from ripple.connectors.contract import Source
    from ripple.connectors.files.folder.listing import DataFile
    from ripple.model.batch import Batch


def open_source(path: str, reading: Reading) -> FilesSource:
    """Return the source of a folder or a pattern; raises InputError and SchemaError."""
    place, options = divided(path)
    return FilesSource(files_at(place), reading, options)


def open_s3(path: str, reading: Reading) -> FilesSource:
    """Return the source of ``s3:`` and this; raises as ``open_source`` does."""
    return _open_remote(f"s3:{path}", reading)


def open_https(path: str, reading: Reading) -> FilesSource:
    """Return the source of ``https:`` and this; raises as ``open_source`` does."""
    return _open_remote(f"https:{path}", reading)


def _open_remote(address: str, reading: Reading) -> FilesSource:
    return open_source(quotable(address), reading)


def quotable(address: str) -> str:
    """Return an address. Raises InputError for one that no error may quote."""
    return address if has_options(address) else checked(address)


def of_paths(paths: Sequence[str | os.PathLike[str]], reading: Reading) -> FilesSource:
    """Return the source of files in the order given; raises as ``open_source`` does."""
    return FilesSource([data_file(os.fspath(path)) for path in paths], reading)


def check(path: str) -> str:
    """Return how many files there are, and of which connector; raises InputError."""
    files = files_at(divided(path)[0])
    scheme = format_of(files).connector.scheme
    return f"files: {len(files)} of {scheme}, the first {files[0].path}, the last {files[-1].path}"


def check_s3(path: str) -> str:
    """Return the text of ``check`` for ``s3:`` and this; raises as it does."""
    return check(f"s3:{path}")


def check_https(path: str) -> str:
    """Return the text of ``check`` for ``https:`` and this; raises as it does."""
    return check(checked(f"https:{path}"))


class FilesSource:
    """Files of one format, one after the other, as one source.

    Offsets go on from file to file; lines are counted in each. A field that a file's folders name
    has that value in all its records, and needs no column in the file.
    ``fraction_read`` is the fraction of all bytes in the batches so far, 0.0 to 1.0.
    """

    def __init__(self, files: Sequence[DataFile], reading: Reading, options: str = "") -> None:
        """Look at all files, and read none. Raises InputError and SchemaError.

        options: of CSV, as each file's URI has them.
        """
        self.name = reading.name
        self._reader = FileReader(format_of(files), reading, options)
        self._batch_rows = reading.batch_rows
        self._sizes_bytes = [(file.version or version_of(file.path)).size_bytes for file in files]
        self._named = [(file.path, self._reader.named(file)) for file in files]
        self._read_files = 0
        self._firsts: list[int] = []  # the offset of the first record of each file so far
        self._open: Source | None = None

    @property
    def fraction_read(self) -> float | None:
        """How much was read, to a block; None where there is nothing to read."""
        total = sum(self._sizes_bytes)
        if not total:
            return None
        share = getattr(self._open, "fraction_read", None) or 0.0
        partly = share * self._sizes_bytes[self._read_files] if share else 0.0
        return (sum(self._sizes_bytes[: self._read_files]) + partly) / total

    def file_at(self, offset: int) -> str | None:
        """Return the file with a record that was read."""
        number = bisect_right(self._firsts, offset)
        return self._named[number - 1][0] if number else None

    def batches(self, from_offset: int = 0) -> Iterator[Batch]:
        """Yield the records from ``from_offset`` on; see Source."""
        return recut(self._all(), self._batch_rows, from_offset)

    def close(self) -> None:
        """Close the file that is being read."""
        opened, self._open = self._open, None
        if opened is not None:
            opened.close()

    def _all(self) -> Iterator[Batch]:
        offset, self._firsts = 0, []
        for number, (path, named) in enumerate(self._named):
            self._read_files = number
            opened = self._open = self._reader.opened(path, named)
            self._firsts.append(offset)
            for batch in self._reader.batches(opened, offset, path, named):
                offset = batch.next_offset
                yield batch
            self.close()
