"""A partition of the first stage in this process: its lives, one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from ripple.assignment import epoch_of
from ripple.checkpoint import Checkpoints
from ripple.connectors.connector import Part
from ripple.events import PartitionFailed
from ripple.partition.keeper import Keeper
from ripple.partition.life import Life
from ripple.partition.settings import Settings
from ripple.partition.warm import Warm
from worker.hosted import Doing, Standing

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.connectors.inputs import Inputs
    from ripple.events import Event
    from ripple.exchange.exchange import Exchange
    from ripple.pipeline.plan import Plan
    from ripple.world.ports import ObjectStore, World
    from worker.ends import Ends

PAUSE_MIN_S = 0.1
PAUSE_MAX_S = 30.0
# Whoever was live for so long fails anew, and not again.
STEADY_S = 60.0
NS = 1_000_000_000


def _untold(_partition: int, _event: Event) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Site:
    """What the partitions of one process have in common. partitions: of the first stage.

    store: of checkpoints, letters and notes; it should repeat what fails (RetryingStore). tell:
    takes what happens, and to which partition. exchange: with the partitions of later stages;
    None where one engine computes all stages.
    """

    world: World
    plan: Plan
    store: ObjectStore
    ends: Ends
    partitions: int
    settings: Settings = field(default_factory=Settings)
    tell: Callable[[int, Event], None] = _untold
    holder: str = "a worker"
    exchange: Exchange | None = None


class InputPartition:
    """Partition ``number`` of the first stage; see Hosted.

    Each try to own it has an epoch of its own, for nobody knows what became of a claim that failed.
    """

    def __init__(self, site: Site, number: int) -> None:
        self._site = site
        self._number = number
        self._doing = Doing()
        self._life: Life | None = None
        self._inputs: Inputs | None = None
        self._keeper: Keeper | None = None
        self._warm: Warm | None = None
        self._is_cold = False
        self._is_following = self._is_leaving = False
        self._failure: str | None = None
        self._epoch: int | None = None
        self._events = self._rows_out = 0

    @property
    def standing(self) -> Standing:
        """How it stands now."""
        report = None if self._life is None else self._life.report
        is_live = report is not None and report.restored is not None and not self._is_leaving
        behind = self._behind if self._is_following else None
        return Standing(
            is_live=is_live,
            behind=behind,
            failure=None if is_live or behind is not None else self._failure,
            epoch=self._epoch,
            events=self._events + (report.events if report is not None else 0),
            rows_out=self._rows_out + (report.rows_out if report is not None else 0),
        )

    @property
    def _behind(self) -> int | None:
        if self._warm is None:
            return 0 if self._is_cold else None
        return self._warm.behind

    def follow(self) -> None:
        """Get ready: with the state at what the outputs have committed, where they tell that."""
        self._is_following = True
        self._doing.begin(self._follow())

    def own(self, since: int) -> None:
        """Own it since a version, from what was followed."""
        self._is_following = False
        if self._warm is not None and self._warm.state is not None:
            self._warm.stop()
        else:
            self._doing.cancel()
        self._doing.begin(self._own(since))

    def store(self) -> None:
        """Store a checkpoint soon."""
        if self._keeper is not None and self._inputs is not None:
            self._keeper.ask_for_checkpoint()
            self._inputs.wake()

    def leave(self) -> None:
        """End in good order; what is not live has nothing to complete."""
        is_live, self._is_following, self._is_leaving = self.standing.is_live, False, True
        if is_live and self._inputs is not None:
            self._inputs.wake()
        else:
            self._doing.cancel()

    def drop(self) -> None:
        """End before the next effect."""
        self._is_following, self._is_leaving = False, True
        self._doing.cancel()

    async def ended(self) -> None:
        """Wait until nothing is done any more."""
        await self._doing.ended()

    async def _follow(self) -> None:
        """Follow until told to own; what fails is told, and the owner goes on."""
        clock, pause_s = self._site.world.clock, PAUSE_MIN_S
        part = Part(self._number, self._site.partitions)
        while self._is_following:
            try:
                reached = self._site.ends.reached(part)
                if reached is None:
                    self._is_cold = True  # whoever owns it restores
                    return
                self._warm = Warm(
                    self._site.plan,
                    self._site.ends.inputs(part),
                    self._checkpoints(),
                    reached,
                    self._site.world,
                    settings=self._site.settings,
                    staged=self._site.exchange is not None,
                )
                await self._warm.follow()
                return
            except Exception as error:
                self._warm = None
                self._failure = f"{type(error).__name__}: {error}"
                self._site.tell(self._number, PartitionFailed(self._number, 0, error))
            await clock.sleep(pause_s if self._is_following else 0)
            pause_s = min(2 * pause_s, PAUSE_MAX_S)

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
                failed = PartitionFailed(self._number, self._epoch or 0, error)
                self._site.tell(self._number, failed)
            if clock.monotonic_ns() - began_ns > STEADY_S * NS:
                pause_s = PAUSE_MIN_S
            await clock.sleep(0 if self._is_leaving else pause_s)
            attempt, pause_s = attempt + 1, min(2 * pause_s, PAUSE_MAX_S)

    async def _live(self, epoch: int) -> None:
        """Live once, to the end: of the input, of the assignment, or by an error."""
        site, part = self._site, Part(self._number, self._site.partitions)
        self._epoch = epoch
        inputs = site.ends.inputs(part)
        warm, self._warm = self._warm, None
        keeper = Keeper(
            self._checkpoints(),
            site.world,
            epoch=epoch,
            holder=site.holder,
            warm=None if warm is None else warm.state,
        )
        sending = None
        if site.exchange is not None:
            sending = site.exchange.send(0, self._number, epoch, inputs.wake)
        life = Life(
            site.plan,
            inputs,
            site.ends.outputs(part, epoch),
            keeper,
            settings=site.settings,
            tell=partial(site.tell, self._number),
            stop=lambda: self._is_leaving,
            staged=site.exchange is not None,
            sends=sending,
        )
        self._life, self._inputs, self._keeper = life, inputs, keeper
        try:
            await life.run()
        finally:
            self._life = self._inputs = self._keeper = None
            if site.exchange is not None and sending is not None:
                site.exchange.stop_sending(sending)
            self._events += life.report.events
            self._rows_out += life.report.rows_out

    def _checkpoints(self) -> Checkpoints:
        site = self._site
        return Checkpoints(
            site.store,
            site.plan.name,
            self._number,
            executor=site.world.executor,
            guards=site.world.guards,
        )
