"""A partition of a later stage in this process: its lives, one after the other."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ripple.assignment import epoch_of
from ripple.checkpoint import Checkpoints
from ripple.events import PartitionFailed, Tell, untold
from ripple.partition.settings import Settings
from ripple.partition.stage_life import StageLife
from worker.hosted import Doing, Standing

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.exchange.exchange import Exchange
    from ripple.partition.group import ReadableGroup
    from ripple.pipeline.plan import Plan
    from ripple.world.ports import ObjectStore, World

PAUSE_MIN_S = 0.1
PAUSE_MAX_S = 30.0
# Whoever was live for so long fails anew, and not again.
STEADY_S = 60.0
NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class StageSite:
    """Where a partition of a later stage is.

    partition: its number among all of the assignment; stage, number: where it is in the plan.
    senders: how many partitions the stage before has. store: of checkpoints; it should repeat what
    fails (RetryingStore). outputs: of the stage, for the owner of an epoch.
    """

    world: World
    plan: Plan
    store: ObjectStore
    exchange: Exchange
    outputs: Callable[[int], ReadableGroup]
    partition: int
    stage: int
    number: int
    senders: int
    settings: Settings = field(default_factory=Settings)
    tell: Tell = untold


class StagePartition:
    """One partition of a later stage; see Hosted.

    It needs no follower that is warm: its state is a copy, and a new owner has it as soon as it has
    read a checkpoint and its senders have sent what is newer.
    """

    def __init__(self, site: StageSite) -> None:
        self._site = site
        self._doing = Doing()
        self._wake = asyncio.Event()
        self._life: StageLife | None = None
        self._is_following = self._is_leaving = False
        self._failure: str | None = None
        self._epoch: int | None = None
        self._events = self._rows_out = 0

    @property
    def standing(self) -> Standing:
        """How it stands now."""
        report = None if self._life is None else self._life.report
        is_restored = report is not None and report.restored is not None
        return Standing(
            is_live=is_restored and not self._is_leaving,
            behind=0 if self._is_following else None,
            failure=self._failure,
            epoch=self._epoch,
            events=self._events + (0 if report is None else report.events),
            rows_out=self._rows_out + (0 if report is None else report.rows_out),
        )

    def follow(self) -> None:
        """Wait for the partition: its owner is not disturbed."""
        self._is_following = True

    def own(self, since: int) -> None:
        """Own it since a version."""
        self._is_following = False
        self._doing.begin(lambda: self._own(since))

    def store(self) -> None:
        """Store a checkpoint soon."""
        if self._life is not None:
            self._life.ask_for_checkpoint()

    def leave(self) -> None:
        """End in good order; what is not live has nothing to complete."""
        is_live, self._is_following, self._is_leaving = self.standing.is_live, False, True
        if is_live:
            self._wake.set()
        else:
            self._doing.cancel()

    def drop(self) -> None:
        """End before the next effect."""
        self._is_following, self._is_leaving = False, True
        self._doing.cancel()

    async def ended(self) -> None:
        """Wait until nothing is done any more."""
        await self._doing.ended()

    async def _own(self, since: int) -> None:
        clock, attempt, pause_s = self._site.world.clock, 0, PAUSE_MIN_S
        while not self._is_leaving:
            began_ns = clock.monotonic_ns()
            try:
                await self._live(epoch_of(since, attempt))
            except Exception as error:
                if self._is_leaving:
                    return  # whoever has it now was faster
                self._failure = f"{type(error).__name__}: {error}"
                self._site.tell(PartitionFailed(self._site.partition, self._epoch or 0, error))
            if clock.monotonic_ns() - began_ns > STEADY_S * NS:
                pause_s = PAUSE_MIN_S
            await clock.sleep(0 if self._is_leaving else pause_s)
            attempt, pause_s = attempt + 1, min(2 * pause_s, PAUSE_MAX_S)

    async def _live(self, epoch: int) -> None:
        """Live once, until it is told to end, or by an error."""
        site = self._site
        self._epoch = epoch
        following = site.exchange.follow(site.stage, site.number, self._wake.set)
        sending = site.exchange.send(site.stage, site.number, epoch, self._wake.set)
        checkpoints = Checkpoints(
            site.store,
            site.plan.name,
            site.partition,
            executor=site.world.executor,
            guards=site.world.guards,
        )
        life = self._life = StageLife(
            site.plan,
            site.stage,
            site.number,
            site.senders,
            follows=following,
            outputs=site.outputs(epoch),
            checkpoints=checkpoints,
            world=site.world,
            epoch=epoch,
            sends=sending,
            settings=site.settings,
            tell=site.tell,
            stop=lambda: self._is_leaving,
            wake=self._wake,
        )
        try:
            await life.run()
        finally:
            self._life = None
            self._events += life.report.events
            self._rows_out += life.report.rows_out
            site.exchange.stop_following(following)
            if sending is not None:
                site.exchange.stop_sending(sending)
