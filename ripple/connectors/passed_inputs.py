"""A wrapper around inputs, for wrappers that change some of their methods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.connectors.inputs import (
    NO_ORIGINALS,
    FiledInputs,
    KeepingInputs,
    OriginalInputs,
    RecordingInputs,
    keyed_by,
    recorded_of,
)
from ripple.core.tracing import TracedInputs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ripple.connectors.files.folder.taken import FileRecord
    from ripple.connectors.inputs import Inputs, Original, Signal
    from ripple.core.cut import Cut
    from ripple.model.batch import Batch, Marker


class PassedInputs:
    """Delegates all methods of inputs, also their optional ones."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs, in the order in which they were declared."""
        return self._inputs.names

    @property
    def keyed_by(self) -> tuple[str, ...] | None:
        """By which fields they are divided among their partitions; see ``keyed_by``."""
        return keyed_by(self._inputs)

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return the first cut that can be read from, and the present end; see Inputs."""
        return await self._inputs.bounds()

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Raise InputError unless the inputs reach ``cut``; see Inputs."""
        await self._inputs.check(cut, identities)

    async def identities(self, cut: Cut) -> dict[str, str]:
        """Return per input a text that identifies the input read up to ``cut``; see Inputs."""
        return await self._inputs.identities(cut)

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``; see Inputs."""
        await self._inputs.open(cut, rows, stop)

    def next(self, cut: Cut) -> tuple[str, Batch | Marker] | Signal:
        """Return the next entry after ``cut``, and its input; or why there is none."""
        return self._inputs.next(cut)

    async def more(self) -> None:
        """Wait until ``next``, after WAITING, may return something else."""
        await self._inputs.more()

    def wake(self) -> None:
        """Let ``more`` return."""
        self._inputs.wake()

    async def sync(self) -> None:
        """Make the input read so far durable, before a cut that includes it is stored."""
        await self._inputs.sync()

    async def close(self) -> None:
        """Release all resources; closing twice is allowed."""
        await self._inputs.close()

    # --- what only some inputs can ---

    def originals(self, name: str, offsets: Sequence[int]) -> Mapping[int, Original]:
        """Return records of the last batch of input ``name``, by offset; see OriginalInputs."""
        held = self._inputs
        return held.originals(name, offsets) if isinstance(held, OriginalInputs) else NO_ORIGINALS

    def file_at(self, name: str, offset: int) -> str | None:
        """Return the file with a record that was read; see FiledInputs."""
        held = self._inputs
        return held.file_at(name, offset) if isinstance(held, FiledInputs) else None

    def stored(self, checkpoints: Sequence[tuple[Cut, Mapping[str, str]]]) -> None:
        """Let go of records that no checkpoint needs; see KeepingInputs."""
        if isinstance(self._inputs, KeepingInputs):
            self._inputs.stored(checkpoints)

    @property
    def recorded(self) -> tuple[str, ...]:
        """The inputs that need a record of their order; see RecordingInputs."""
        return recorded_of(self._inputs)

    def record_in(self, records: Mapping[str, FileRecord]) -> None:
        """Use these records, by input; see RecordingInputs."""
        if isinstance(self._inputs, RecordingInputs):
            self._inputs.record_in(records)

    def trace(self) -> None:
        """Keep the trace contexts of records from the next ``open`` on; see TracedInputs."""
        if isinstance(self._inputs, TracedInputs):
            self._inputs.trace()

    def contexts(self, name: str, next_offset: int) -> list[str]:
        """Return those of the records before an offset; see TracedInputs."""
        held = self._inputs
        return held.contexts(name, next_offset) if isinstance(held, TracedInputs) else []
