"""The published rows of outputs, read back while their former owner still writes.

So the pause of a switch does not grow with an output: after its opening only the rest is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.connectors.commit_group import AheadGroup
from ripple.task.published_rows import PublishedRows, keys_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.connectors.commit_group import CommitGroup
    from ripple.model.schema.types import Field


class ReadAhead:
    """The changes of some outputs up to marks. Each output is taken out of it once.

    Invariant: outputs are append-only, so changes that were read before the opening stay valid.
    """

    def __init__(
        self,
        group: CommitGroup | None = None,
        keys: Mapping[str, tuple[Field, ...]] | None = None,
        *,
        are_keys_alone: bool = False,
    ) -> None:
        """Read nothing yet. keys: of the outputs. are_keys_alone: whether to leave out the rest."""
        self._group = group
        self._keys = dict(keys or {})
        self._are_keys_alone = are_keys_alone
        self._found: dict[str, tuple[PublishedRows, str]] = {}

    async def read(self) -> None:
        """Read the changes since the last call. Raises OutputError and OSError."""
        if not isinstance(self._group, AheadGroup):
            return
        for output, key in self._keys.items():
            shown, mark = self._found.get(output, (PublishedRows(key), None))

            def take(
                rows: pa.RecordBatch, shown: PublishedRows = shown, key: tuple[Field, ...] = key
            ) -> None:
                shown.changed([keys_of(rows, key) if self._are_keys_alone else rows])

            try:
                after = await self._group.read_ahead(output, mark, take)
            except (pa.ArrowException, KeyError):  # of another key: reported once it is open
                self._found.pop(output, None)
                continue
            if after is not None:
                self._found[output] = shown, after

    def take(self, output: str, key: tuple[Field, ...]) -> tuple[PublishedRows, str | None]:
        """Return the published rows of an output, and the mark where reading continues."""
        return self._found.pop(output, (PublishedRows(key), None))
