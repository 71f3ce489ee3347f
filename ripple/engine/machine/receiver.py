"""The first stage behind repartitioned sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ripple.engine.machine.graph_engine import GraphEngine
from ripple.engine.machine.targets import goes_to_one

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from ripple.engine.machine.port import Port
    from ripple.engine.machine.targets import Targets
    from ripple.engine.machine.way import Taken

    Ints = npt.NDArray[np.int64]


class Receiver(GraphEngine):
    """A partition of the first stage, with inputs of repartitioned sources.

    A record with rows for several partitions comes to each of them, and each counts its own rows.
    Rows of events are shown in the lowest one.

    divided: the targets of each repartitioned source. number: of the partition in the stage.
    """

    divided: ClassVar[Mapping[str, Targets]]
    number: ClassVar[int]
    _shares = True

    def _leave_to_others(self, port: Port, offsets: Ints | None, found: Taken) -> None:
        assert offsets is not None, "records that several count have their offsets"
        targets = self.divided.get(port.source.name)
        if targets is None or goes_to_one(port):
            return
        numbered = [(one.rows, targets.of_rows(one, offsets)) for one in found.keyed]
        shown = [taken for _, taken in found.shown]
        if shown:
            at, numbers = targets.pairs(numbered, shown, offsets)
            here, first = np.zeros(len(offsets), np.bool_), np.unique(at, return_index=True)[1]
            here[at[first]] = numbers[first] == self.number
            for taken in shown:
                taken.keep(here[taken.origins])
        for taken, of_rows in numbered:
            taken.keep(of_rows == self.number)


def receiver(divided: Mapping[str, Targets], number: int) -> type[Receiver]:
    """Return the engine of a partition of the first stage, with repartitioned sources."""
    return type("Receiver", (Receiver,), {"divided": divided, "number": number})
