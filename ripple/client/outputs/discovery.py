"""Endpoints of a cluster's partitions, as a coordinator reports them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ripple.control.assignment import epoch_of, stage_names, worker_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from ripple.control.rpc.cluster_pb2 import StatusAnswer
    from ripple.world.control import Control
    from ripple.world.tls import Tls

STATUS_S = 5.0


class AccessDeniedError(ConnectionError):
    """Coordinators answer, and refuse: access, or because several pipelines run there."""


class Endpoint(NamedTuple):
    """The owner of a partition: its process, address, and lowest possible epoch."""

    process: str
    address: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The assignment for external clients. stages: the owners of each stage of the plan, in order.

    version: of the assignment. coordinator: its source.
    """

    stages: tuple[tuple[Endpoint | None, ...], ...] = ()
    version: int = 0
    coordinator: str = ""
    workers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By worker, its addresses by purpose."""
    credential: str = field(default="", repr=False)
    """The credential for subscribing to outputs."""

    @property
    def processes(self) -> dict[str, str]:
        """The address of each process that owns a partition, by its name."""
        found = {place.process: place.address for stage in self.stages for place in stage if place}
        return dict(sorted(found.items()))


def found_by(
    control: Control, coordinators: Sequence[str], tls: Tls | None = None
) -> Callable[[], Awaitable[Endpoints]]:
    """Return a function that asks the coordinators, trying the next one if one is slow.

    It raises ConnectionError if none answers; AccessDeniedError, a subclass, if they refuse.
    """

    async def find() -> Endpoints:
        # Here, since gRPC is slow to import, and may be absent.
        from ripple.client.outputs.first_answer import first_answer  # noqa: PLC0415
        from ripple.control.rpc.cluster_pb2 import StatusAnswer  # noqa: PLC0415
        from ripple.control.rpc.mapping import RpcError, parsed  # noqa: PLC0415
        from ripple.control.rpc.methods import STATUS  # noqa: PLC0415
        from ripple.world.control import RefusedError  # noqa: PLC0415

        try:
            address, data = await first_answer(
                control, coordinators, STATUS, b"", deadline_s=STATUS_S, tls=tls
            )
            return endpoints_of(parsed(StatusAnswer, data), address)
        except RefusedError as error:
            raise AccessDeniedError(str(error)) from error
        except RpcError as error:
            raise ConnectionError(f"no coordinator answers: {error}") from error

    return find


def endpoints_of(answer: StatusAnswer, coordinator: str) -> Endpoints:
    """Parse a coordinator's answer."""
    workers = {one.id: {to.name: to.text for to in one.addresses} for one in answer.members}
    stages: dict[str, list[Endpoint | None]] = {}
    for one in answer.owners:
        owner = one.owner if one.HasField("owner") else ""
        slot = owner.rpartition("/")[2]
        address = workers.get(worker_of(owner), {}).get(f"deltas/{slot}") if owner else None
        place = None if address is None else Endpoint(owner, address, epoch_of(one.since, 0))
        stages.setdefault(one.stage, []).append(place)
    stages = {name: one for name, one in stages.items() if not stage_names.divides(name)}
    return Endpoints(
        tuple(map(tuple, stages.values())),
        answer.version,
        coordinator,
        workers,
        answer.credential,
    )
