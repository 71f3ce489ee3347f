"""Which records the rows of waiting nodes are of: found by their places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ripple.engine.kernels.identities import only_span
from ripple.engine.machine.way import PRECEDING, SPAN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from ripple.engine.machine.port import Port
    from ripple.engine.operators.rows import Rows
    from ripple.engine.operators.stream_rows import StreamRows

    Ints = npt.NDArray[np.int64]


class RowOrigins:
    """Finds the inputs of rows by their places.

    Final rows have no input, and places after all others.
    """

    def __init__(self, ports: Sequence[Port]) -> None:
        """ports: of all sources, in their order."""
        self._ports = ports
        self._all = np.empty(0, np.int64)

    def __call__(self, places: Ints) -> Iterator[tuple[str, Ints, Ints, Ints]]:
        """Yield the inputs with rows at these places: which rows, their offsets and indexes."""
        rank = only_span(places, SPAN, PRECEDING)
        if 0 <= rank < len(self._ports) and len(self._ports[rank].inputs) == 1:
            port = self._ports[rank]
            yield port.inputs[0], self._numbers(len(places)), *port.identities(places)
            return
        sources = (places + PRECEDING) // SPAN  # rows before a source's records included
        for rank, port in enumerate(self._ports):
            mine = np.flatnonzero(sources == rank)
            if not len(mine):
                continue
            if len(port.inputs) == 1:
                yield port.inputs[0], mine, *port.identities(places[mine])
                continue
            numbers = port.numbers(places[mine])
            for number, name in enumerate(port.inputs):
                at = mine[numbers == number]
                if len(at):
                    yield name, at, *port.identities(places[at])

    def only(self, places: Ints) -> tuple[str, int, int] | None:
        """Return the input of all rows at these places; see ``ByInput``."""
        rank = only_span(places, SPAN, PRECEDING)
        if not 0 <= rank < len(self._ports):
            return None
        port, number = self._ports[rank], 0
        inputs = port.inputs
        if len(inputs) > 1:
            numbers = port.numbers(places)
            number = int(numbers[0])
            if (numbers != number).any():
                return None
        return inputs[number], port.base, len(inputs)

    def show(self, stream: StreamRows, rows: Rows) -> bool:
        """Show rows that are all of one input, if the stream takes them with their places alone."""
        assert rows.offsets is not None
        rank = (rows.offsets.item(0) + PRECEDING) // SPAN if rows.count else -1
        if not 0 <= rank < len(self._ports):
            return False
        port = self._ports[rank]
        inputs = port.inputs
        return len(inputs) == 1 and stream.add_placed(inputs[0], rows, port.span)

    def _numbers(self, count: int) -> Ints:
        """Return the numbers below ``count``, which most batches share."""
        if count > len(self._all):
            self._all = np.arange(2 * count)
            self._all.flags.writeable = False
        return self._all[:count]
