"""An opened file with its first blocks: only then is it recorded, so a damaged one is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ripple.connectors.files.folder.one_file import FileReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.connectors.connector import Reading
    from ripple.connectors.contract import Source
    from ripple.connectors.files.folder.listing import DataFile
    from ripple.connectors.registry import Uri
    from ripple.model.batch import Batch

BLOCKS_AT_ONCE = 8


class Some(NamedTuple):
    """The next blocks of a file, whether they are the last ones, and the error after them."""

    blocks: list[Batch]
    is_all: bool
    error: Exception | None = None


class BegunFile:
    """The blocks of a file. It is opened, and its first ones are read, in the thread that makes it.

    Invariant: ``next`` are blocks that were read, and not handed on yet.
    """

    def __init__(
        self, form: Uri, reading: Reading, options: str, file: DataFile, first: int
    ) -> None:
        """first: the offset of its first record. Raises the errors of opening and reading."""
        reader = FileReader(form, reading, options)
        named = reader.named(file)
        self._opened: Source = reader.opened(file.path, named)
        self._blocks: Iterator[Batch] = reader.batches(self._opened, first, file.path, named)
        self.next = self.read()
        if self.next.error is not None:
            self.close()
            raise self.next.error

    def read(self) -> Some:
        """Read the blocks after ``next``."""
        found: list[Batch] = []
        try:
            for block in self._blocks:
                found.append(block)
                if len(found) == BLOCKS_AT_ONCE:
                    return Some(found, is_all=False)
        except Exception as error:  # of any kind: the records before it count
            return Some(found, is_all=True, error=error)
        return Some(found, is_all=True)

    def close(self) -> None:
        """Close the file."""
        self._opened.close()
