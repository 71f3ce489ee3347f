"""The context that the partitions of one process share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ripple.task.settings import Settings
from worker.engine.concurrency import ConcurrencyLimit
from worker.engine.generation import ALONE

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.connectors.connector import LaneHome
    from ripple.core.events import Event
    from ripple.core.tracing import Tracer
    from ripple.exchange.exchange import Exchange
    from ripple.model.pipeline.plan import Plan
    from ripple.task.endpoints import Endpoints
    from ripple.task.replay_debts import ReplayDebts
    from ripple.world.ports import ObjectStore, World
    from worker.backpressure import Intake
    from worker.engine.generation import Generation


def _no_listener(_partition: int, _event: Event) -> None:
    pass


@dataclass(frozen=True, slots=True)
class ProcessContext:
    """The context that the partitions of one process share.

    store: of checkpoints, dead letters and hints; it should retry failures (RetryingStore). emit:
    listener of each partition's events. exchange: with the partitions of downstream stages; None if
    one engine computes all stages. intake: backpressure; None takes everything in. tracer: None
    without tracing. home: of repartition topics; None if they are logs on the world's disk. turns:
    concurrency limits. debts: of its partitions; None lets each store by its own alone. generation:
    whether its outputs are those that readers follow.
    """

    world: World
    plan: Plan
    store: ObjectStore
    ends: Endpoints
    settings: Settings = field(default_factory=Settings)
    emit: Callable[[int, Event], None] = _no_listener
    exchange: Exchange | None = None
    intake: Intake | None = None
    tracer: Tracer | None = None
    home: LaneHome | None = None
    turns: ConcurrencyLimit = field(default_factory=ConcurrencyLimit)
    debts: ReplayDebts | None = None
    generation: Generation = ALONE
