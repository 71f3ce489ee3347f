"""An edge into a stage: the tables of its two ends, and their transport."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Protocol

from ripple.core.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from ripple.engine.edges.edge_changes import Closes
    from ripple.engine.edges.remote_groups import RemoteGroups
    from ripple.engine.edges.remote_rows import RemoteRows
    from ripple.engine.graph.column import Column
    from ripple.engine.graph.node import Graph
    from ripple.model.pipeline.nodes import Fold
    from ripple.model.pipeline.plan import Plan
    from ripple.model.pipeline.stages import Stage, Transport

    Ints = npt.NDArray[np.int64]
    Bools = npt.NDArray[np.bool_]


@frozen
class Edge(ABC):
    """The edge into ``stage`` of ``plan``."""

    plan: Plan
    stage: Stage

    carries: ClassVar[str]
    """Its rows, in a word."""

    @property
    def above(self) -> Fold:
        """The fold of the rows on the edge."""
        assert self.stage.edge is not None
        return self.plan.fold(self.stage.edge.of)

    @property
    def fold(self) -> Fold:
        """The fold that reads them, the first one of the stage."""
        assert self.stage.edge is not None
        return self.plan.fold(self.stage.edge.to)

    @property
    def targets(self) -> int:
        """How many partitions the stage has."""
        assert self.stage.partitions is not None
        return self.stage.partitions

    @property
    def transport(self) -> Transport:
        """How changes get to the receivers."""
        assert self.stage.edge is not None
        return self.stage.edge.kind.transport

    @property
    def closes_ns(self) -> Closes | None:
        """When groups of the stage end, by the starts of their windows; None if they do not."""
        return partial(self.plan.closes_ns, self.fold) if self.plan.frees(self.fold) else None

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The schema of its rows: the key, ``op``, the values."""

    @abstractmethod
    def sender(self, graph: Graph, column: Column) -> Table:
        """Return the rows retained by a sender. column: the rows of ``above``."""

    @abstractmethod
    def receiver(self, graph: Graph, senders: Sequence[str]) -> RemoteGroups | RemoteRows:
        """Return the receiver's end for a partition of the stage."""


class Table(Protocol):
    """The rows of an edge, and their changes that receivers have not got yet."""

    def part_with(self, retired: Ints) -> pa.RecordBatch:
        """Note the slots that this stabilize frees; return the rows that are final.

        retired: slots of the fold above that are final and about to be freed.
        """

    def take(self, ready: Bools) -> list[pa.RecordBatch]:
        """Return the changes of each ready target since its last batch; bool[targets].

        Of the others it is noted which slots changed, and which keys have gone.
        """

    def forget(self, target: int) -> None:
        """Forget the unsent removed rows of a target, which gets the whole table next."""

    def gone_rows(self, target: int) -> int:
        """Return how many removed rows a target has not got yet."""

    def whole(self) -> pa.RecordBatch:
        """Return all rows, each a Set."""
