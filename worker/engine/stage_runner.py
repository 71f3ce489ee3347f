"""Runs a partition of a downstream stage: its tasks, one after the other."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ripple.core.events import Tell, untold
from ripple.storage.checkpoint import Checkpoints
from ripple.task.downstream import DownstreamTask
from ripple.task.settings import Settings
from ripple.task.tracing import Traces
from worker.engine.runner import Runner
from worker.engine.stages import sinks_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.connectors.commit_group import ReadableGroup
    from ripple.core.tracing import Tracer
    from ripple.exchange.exchange import Exchange
    from ripple.model.pipeline.plan import Plan
    from ripple.task.edges import Upstream
    from ripple.task.repartition.follows import FollowedLanes
    from ripple.world.ports import ObjectStore, World


@dataclass(frozen=True, slots=True)
class StageContext:
    """Context of a downstream partition.

    partition: its number in the assignment; stage, number: its stage, and its number there.
    senders: number of partitions of the upstream stage. store: of checkpoints; it should retry
    failures (RetryingStore). exchange: with the neighbouring stages. outputs: of the stage, for the
    owner of an epoch. followed: reads the upstream stage from its log, given a wake-up callback;
    None if it subscribes over the exchange. tracer: None without tracing.
    """

    world: World
    plan: Plan
    store: ObjectStore
    exchange: Exchange | None
    outputs: Callable[[int], ReadableGroup]
    partition: int
    stage: int
    number: int
    senders: int
    settings: Settings = field(default_factory=Settings)
    tell: Tell = untold
    followed: Callable[[Callable[[], None]], FollowedLanes] | None = None
    tracer: Tracer | None = None


class StageRunner(Runner):
    """Runs one partition of a downstream stage.

    It needs no hot standby: a new owner reads a checkpoint, and its senders send what is newer.
    """

    def __init__(self, site: StageContext) -> None:
        super().__init__(site.world.clock, site.partition, site.tell)
        self._site = site
        self._wake = asyncio.Event()
        self._life: DownstreamTask | None = None

    @property
    def _behind(self) -> int | None:
        return 0

    def follow(self) -> None:
        """Wait for the partition, without disturbing its owner."""
        self._is_following = True

    def store(self) -> None:
        """Store a checkpoint soon."""
        if self._life is not None:
            self._life.ask_for_checkpoint()

    async def _live(self, epoch: int, *, is_handed_over: bool) -> None:  # noqa: ARG002 - same for it
        site = self._site
        exchange, sending = site.exchange, None
        following: Upstream[Any]
        if site.followed is not None:
            following = read = site.followed(self._wake.set)
            stop_following = read.stop
        else:
            assert exchange is not None
            following = over = exchange.follow(site.stage, site.number, self._wake.set)

            async def stop_following() -> None:
                exchange.stop_following(over)

        if exchange is not None:
            shows = sinks_of(site.plan, site.stage)
            sending = exchange.send(site.stage, site.number, epoch, self._wake.set, shows)
        checkpoints = Checkpoints(
            site.store,
            site.plan.name,
            site.partition,
            executor=site.world.executor,
            guards=site.world.guards,
        )
        outputs, traces = site.outputs(epoch), None
        if site.tracer is not None:
            traces = Traces(site.tracer, stage=site.stage, partition=site.number, group=outputs)
        life = self._life = DownstreamTask(
            site.plan,
            site.stage,
            site.number,
            site.senders,
            follows=following,
            outputs=outputs,
            checkpoints=checkpoints,
            world=site.world,
            epoch=epoch,
            sends=sending,
            settings=site.settings,
            tell=self._told,
            stop=lambda: self._is_to_stop,
            wake=self._wake,
            traces=traces,
        )
        self._report = life.report
        try:
            await life.run()
        finally:
            self._life = None
            self._over(life.report)
            await stop_following()
            if exchange is not None and sending is not None:
                exchange.stop_sending(sending)

    def _wake_life(self) -> None:
        self._wake.set()
