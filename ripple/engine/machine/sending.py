"""The changes from a partition to the partitions of a stage that follows it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from ripple.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ripple.core.cut import Cut
    from ripple.engine.edges.edge_changes import EdgeChanges
    from ripple.engine.edges.outgoing import Outgoing
    from ripple.engine.machine.partition import Partition


class Sending(ABC):
    """The changes of a partition for one stage that follows, by partition of that stage."""

    @property
    @abstractmethod
    def cut(self) -> dict[str, int]:
        """The cut of the sender: the next offset of each input."""

    @property
    @abstractmethod
    def watermark_ns(self) -> int:
        """The merged watermark: the minimum over all inputs of the sender."""

    @property
    @abstractmethod
    def is_stable(self) -> bool:
        """Whether ``stabilize`` was called after the last change."""

    @abstractmethod
    def _sender(self, *targets: int) -> Outgoing:
        """Return the sender's end of the edge; raises InputError for targets that it has not."""

    def outgoing(self) -> list[EdgeChanges]:
        """Return the changes for each partition of the next stage since the last call.

        To be called after ``stabilize``, as rarely as one likes: a row that changed several times
        is in it once. Changes for a log are taken before each snapshot.
        """
        assert self.is_stable, "stabilize first"
        return [*self._sender().take(self.cut, self.watermark_ns).values()]

    def outgoing_to(self, targets: Collection[int]) -> dict[int, EdgeChanges]:
        """Return the changes for some partitions of the next stage, each as ``outgoing``.

        For the others changes are noted, a row once; of a state edge they get the whole
        table, as after ``restart``, once more has gone than is left.
        """
        assert self.is_stable, "stabilize first"
        return self._sender(*targets).take(self.cut, self.watermark_ns, targets)

    def restart(self, target: int) -> None:
        """Give a partition of the next stage the whole table next, over a state edge.

        Until then nothing is kept for it.
        """
        self._sender(target).restart(target)

    def given_to(self, target: int) -> Cut | None:
        """Return the cut of the last batch for a partition of the next stage.

        None if it gets the whole table next.
        """
        return self._sender(target).since(target)

    def table_for(self, target: int) -> EdgeChanges:
        """Return the beginning for a partition of the next stage that starts to follow this one.

        To be called right after ``outgoing``: changes that were not taken are in it too.
        """
        assert self.is_stable, "stabilize first"
        return self._sender(target).table(target, self.cut, self.watermark_ns)

    def first_for(self, target: int) -> EdgeChanges:
        """Return the first changes for a new partition of the next stage.

        That is a table, or all changes since the beginning of a log.
        """
        assert self.is_stable, "stabilize first"
        return self._sender(target).first(target, self.cut, self.watermark_ns)

    def release(self, target: int, watermark_ns: int) -> None:
        """Forget final rows for a partition of the next stage that has made them durable.

        watermark_ns: that of its state at a cut which is stored: it will never ask for less.
        """
        self._sender(target).release(target, watermark_ns)

    def send_as_log(self) -> None:
        """Leave the changes for the next stage to a log: forget them once taken, final rows too.

        To be called before the first event. Then no receiver may begin again with a whole table.
        """
        self._sender().as_log()


class SendingTo(Sending):
    """The changes from a partition to one of several stages."""

    def __init__(self, partition: Partition, outgoing: Outgoing) -> None:
        self._partition = partition
        self._outgoing = outgoing

    @property
    def cut(self) -> dict[str, int]:
        """The cut of the sender."""
        return self._partition.cut

    @property
    def watermark_ns(self) -> int:
        """The merged watermark of all inputs of the fold whose rows are sent."""
        return self._partition.watermark_under(self._outgoing.of)

    @property
    def is_stable(self) -> bool:
        """Whether ``stabilize`` was called after the last change."""
        return self._partition.is_stable

    def _sender(self, *targets: int) -> Outgoing:
        return checked(self._outgoing, targets)


def checked(outgoing: Outgoing | None, targets: Sequence[int]) -> Outgoing:
    """Return the sender's end of an edge; raises InputError unless it has all targets."""
    for target in targets or (0,):
        if outgoing is None or not 0 <= target < outgoing.targets:
            raise InputError(f"no partition {target!r} of a next stage follows this one")
    assert outgoing is not None
    return outgoing
