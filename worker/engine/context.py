"""What the partitions of one process have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ripple.task.settings import Settings
from worker.engine.concurrency import ConcurrencyLimit

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.connectors.connector import LaneHome
    from ripple.core.events import Event
    from ripple.core.tracing import Tracer
    from ripple.exchange.exchange import Exchange
    from ripple.model.pipeline.plan import Plan
    from ripple.world.ports import ObjectStore, World
    from worker.backpressure import Intake
    from worker.engine.endpoints import Endpoints


def _untold(_partition: int, _event: Event) -> None:
    pass


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What the partitions of one process have in common. partitions: of the first stage.

    store: of checkpoints, letters and notes; it should repeat what fails (RetryingStore). tell:
    takes what happens, and to which partition. exchange: with the partitions of later stages;
    None where one engine computes all stages. intake: how much is taken in; None for all.
    tracer: None where nobody follows events. home: of lanes between stages; None where they are
    logs on the world's disk. turns: of those that get ready.
    """

    world: World
    plan: Plan
    store: ObjectStore
    ends: Endpoints
    partitions: int
    settings: Settings = field(default_factory=Settings)
    tell: Callable[[int, Event], None] = _untold
    holder: str = "a worker"
    exchange: Exchange | None = None
    intake: Intake | None = None
    tracer: Tracer | None = None
    home: LaneHome | None = None
    turns: ConcurrencyLimit = field(default_factory=ConcurrencyLimit)
