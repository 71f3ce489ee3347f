"""The headers of records, parsed on request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    import pyarrow as pa

    from ripple.world.broker import Headers


class HeaderColumn(Sequence["Headers"]):
    """The kinds of a sequence of headers, one entry a record.

    data: binary, none null: a record's headers as its batch has them, which is as they are written
    again. To take one apart raises DamagedError where it is not sound.
    """

    def __init__(self, data: pa.Array) -> None:
        self.data = data

    def __len__(self) -> int:
        """Return how many records there are."""
        return len(self.data)

    @overload
    def __getitem__(self, row: int) -> Headers: ...
    @overload
    def __getitem__(self, row: slice) -> HeaderColumn: ...
    def __getitem__(self, row: int | slice) -> Headers | HeaderColumn:
        """Return the headers of a record, or those of some that follow each other."""
        if isinstance(row, slice):
            return HeaderColumn(self.data[row])
        from ripple.connectors.kafka.record_batches import headers_of  # noqa: PLC0415 - which makes these

        return headers_of(self.data[row].as_py())
