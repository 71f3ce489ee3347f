"""One run: a scenario starts, crashes and restarts until it has finished."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ripple.testing.sim.disk import SimDisk
from ripple.testing.sim.effects import Crash, Effects, Trace
from ripple.testing.sim.faults import Planned, is_expected
from ripple.testing.sim.store import SimStore
from ripple.testing.sim.world import SimWorld, make_world

if TYPE_CHECKING:
    from ripple.testing.sim.faults import Fault, Injector

LIVES_MAX = 100


class Scenario(Protocol):
    """A scenario: a function, plain or async, of the world and the seed.

    It is called once per incarnation (``lives``) of the process: it resumes from the remains of
    earlier ones, and returns when the work is done. An OSError or RippleError that it raises ends
    an incarnation in which a fault has struck; at any other time, and any other error, is the bug
    looked for.
    """

    def __call__(self, world: SimWorld, seed: int, /) -> Any:
        """Live once."""
        ...


@dataclass(frozen=True, slots=True)
class Run:
    """The result of a run: ``error`` is None when all was well."""

    seed: int
    faults: tuple[Fault, ...]
    error: BaseException | None
    trace: Trace
    effects: tuple[tuple[str, ...], ...]  # names, by incarnation

    @property
    def lives(self) -> int:
        """How many incarnations it took."""
        return len(self.effects)


def run(
    scenario: Scenario,
    seed: int,
    injector: Injector,
    *,
    check: Scenario | None = None,
    without: tuple[str, ...] = (),
) -> Run:
    """Run ``scenario`` once under the faults of ``injector``.

    ``check`` gets, after each incarnation, a copy of the remains in a world without faults.
    """
    trace = Trace()
    witness: dict[str, Any] = {}
    landed: list[Fault] = []
    names: list[tuple[str, ...]] = []
    disk, store = SimDisk(), SimStore()
    disk.removed = store.removed = frozenset(without)
    life = 0
    try:
        while life < LIVES_MAX:
            effects = Effects(life, Planned(()) if injector.healed(life) else injector, trace)
            disk = _found(disk, effects)
            store = store.next(effects, seed)
            world = make_world(seed, effects, disk, store, witness)
            try:
                finished = _live(scenario, world, seed)
            finally:
                landed += effects.landed
                names.append(tuple(effects.names))
            if check is not None:
                _check(check, world, seed)
            if finished:
                return Run(seed, tuple(landed), None, trace, tuple(names))
            life += 1
        raise AssertionError(f"not finished after {LIVES_MAX} lives")
    except Exception as error:  # any error of a scenario or a check is the result of a run
        trace.note(f"failed: {type(error).__name__}: {error}")
        return Run(seed, tuple(landed), error, trace, tuple(names))


def _live(scenario: Scenario, world: SimWorld, seed: int) -> bool:
    """Return whether the scenario has finished; raise an error that is a bug."""
    try:
        result = scenario(world, seed)
        if inspect.isawaitable(result):
            world.loop.run_until_complete(result)
    except Crash:
        return False
    except Exception as error:
        # Errors of a dying process are invisible.
        if world.effects.crash is None:
            if not (world.effects.landed and is_expected(error)):
                raise
            world.trace.note(f"ended: {type(error).__name__}: {error}")
        return False
    finally:
        world.loop.close()
    # A crash that the code under test has swallowed is a crash all the same.
    return world.effects.crash is None


def _found(disk: SimDisk, effects: Effects) -> SimDisk:
    crash = disk.effects.crash
    if crash is not None and crash.kind.startswith("power"):
        return disk.after_power_cut(effects, crash.salt)
    return disk.after_exit(effects)


def _check(check: Scenario, world: SimWorld, seed: int) -> None:
    quiet = Effects(world.effects.life, Planned(()), Trace())
    disk, store = _found(world.disk, quiet), world.store.copy(quiet)
    copied = make_world(seed, quiet, disk, store, world.witness)
    try:
        result = check(copied, seed)
        if inspect.isawaitable(result):
            copied.loop.run_until_complete(result)
    finally:
        copied.loop.close()
