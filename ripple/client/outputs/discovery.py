"""Where the partitions of a cluster are, as a coordinator says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ripple.control.assignment import epoch_of, worker_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from ripple.control.rpc.cluster_pb2 import StatusAnswer
    from ripple.world.control import Control
    from ripple.world.tls import Tls

STATUS_S = 5.0
# The stage that divides records anew shows nothing, and is none of the plan's.
DIVIDING = "repartition"


class AccessDeniedError(ConnectionError):
    """Coordinators answer, and do not tell us."""


class Endpoint(NamedTuple):
    """Who owns a partition: a process, its address, and the least epoch that it has."""

    process: str
    address: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The assignment as those outside need it. stages: for each of the plan its owners, in order.

    version: of the assignment. coordinator: who has said it.
    """

    stages: tuple[tuple[Endpoint | None, ...], ...] = ()
    version: int = 0
    coordinator: str = ""
    workers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By worker, its addresses by purpose."""
    credential: str = field(default="", repr=False)
    """What lets who has it follow outputs."""

    @property
    def processes(self) -> dict[str, str]:
        """The address of each process that owns a partition, by its name."""
        found = {place.process: place.address for stage in self.stages for place in stage if place}
        return dict(sorted(found.items()))


def found_by(
    control: Control, coordinators: Sequence[str], tls: Tls | None = None
) -> Callable[[], Awaitable[Endpoints]]:
    """Return what asks coordinators, the next one where one does not answer soon.

    Raises ConnectionError where none answers; AccessDeniedError is one: they refuse.
    """

    async def find() -> Endpoints:
        # Here, since gRPC takes its time, and may be absent.
        from ripple.client.outputs.first_answer import first_answer  # noqa: PLC0415
        from ripple.control.rpc.cluster_pb2 import StatusAnswer  # noqa: PLC0415
        from ripple.control.rpc.methods import STATUS  # noqa: PLC0415
        from ripple.control.rpc.reading import RpcError, parsed  # noqa: PLC0415
        from ripple.world.control import RefusedError  # noqa: PLC0415

        try:
            address, data = await first_answer(
                control, coordinators, STATUS, b"", deadline_s=STATUS_S, tls=tls
            )
            return places_of(parsed(StatusAnswer, data), address)
        except RefusedError as error:
            raise AccessDeniedError(f"no coordinator lets us in: {error}") from error
        except RpcError as error:
            raise ConnectionError(f"no coordinator answers: {error}") from error

    return find


def places_of(answer: StatusAnswer, coordinator: str) -> Endpoints:
    """Return the places that a coordinator's answer names."""
    workers = {one.id: {to.name: to.text for to in one.addresses} for one in answer.members}
    stages: dict[str, list[Endpoint | None]] = {}
    for one in answer.owners:
        owner = one.owner if one.HasField("owner") else ""
        slot = owner.rpartition("/")[2]
        address = workers.get(worker_of(owner), {}).get(f"deltas/{slot}") if owner else None
        place = None if address is None else Endpoint(owner, address, epoch_of(one.since, 0))
        stages.setdefault(one.stage, []).append(place)
    stages.pop(DIVIDING, None)
    return Endpoints(
        tuple(map(tuple, stages.values())),
        answer.version,
        coordinator,
        workers,
        answer.credential,
    )
