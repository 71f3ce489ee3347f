"""Looking for the crash that loses data: at every effect, and at random."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Self

from ripple.core.errors import InputError
from ripple.testing.naming import name_of
from ripple.testing.sim.chance import Chance
from ripple.testing.sim.faults import (
    CRASHES,
    FAULTS_OF,
    SALT_LOST,
    SALT_MIXED,
    Drawn,
    Fault,
    Faults,
    Planned,
)
from ripple.testing.sim.run import Run, Scenario, run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TRACE_LINES_MAX = 40
SHRINK_RUNS_MAX = 500


class SimulationError(AssertionError):
    """A run has failed; the message holds the seed, its shortest trace and how to repeat it."""

    def __init__(self, message: str, failed: Run) -> None:
        super().__init__(message)
        self.run = failed


@dataclass(slots=True)
class Report:
    """Counts of the runs tried; ``landed``: of the faults that have struck, by kind."""

    runs: int = 0
    lives: int = 0
    effects: int = 0
    landed: Counter[str] = field(default_factory=Counter)

    def add(self, done: Run) -> None:
        """Count a run."""
        self.runs += 1
        self.lives += done.lives
        self.effects += sum(map(len, done.effects))
        self.landed.update(fault.kind for fault in done.faults)

    def __iadd__(self, other: Report) -> Self:
        """Add the counts of another report."""
        self.runs += other.runs
        self.lives += other.lives
        self.effects += other.effects
        self.landed.update(other.landed)
        return self

    def of_something(self) -> Self:
        """Return this; raises InputError where nothing was tried, which proves nothing."""
        if not self.runs:
            raise InputError("nothing was tried: give at least one seed")
        return self

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.landed.items()))
        done = f"{self.runs} runs, {self.lives} lives, {self.effects} effects"
        return f"{done}; faults: {kinds or 'none'}"


def explore(
    scenario: Scenario,
    *,
    seeds: Iterable[int],
    faults: Faults | None = None,
    check: Scenario | None = None,
    without: tuple[str, ...] = (),
) -> Report:
    """Run ``scenario`` under random schedules and faults, one run a seed.

    ``check(world, seed)`` is called after each incarnation on a copy of the remains. ``without``
    names safeguards to switch off. Raises :class:`SimulationError` for the first run that fails.
    """
    explorer = _Explorer(scenario, check, without)
    chosen = faults or getattr(scenario, "faults", None) or Faults()
    for seed in seeds:
        explorer.judge(explorer.run(seed, Drawn(seed, chosen)))
    return explorer.report


def enumerate_crashes(
    scenario: Scenario,
    *,
    seed: int = 0,
    pairs: int = 0,
    first: int = 0,
    every: int = 1,
    check: Scenario | None = None,
    without: tuple[str, ...] = (),
) -> Report:
    """Crash ``scenario`` at every effect of a run: before it, within it, and after the last.

    The world after one effect equals that before the next, when more may have been promised. Each
    crash is a kill, a power cut that loses all unsynced bytes, and one that leaves some of them.
    ``pairs`` more runs crash a second time while the first crash is recovered from.
    Only each ``every``-th crash is tried, from number ``first`` on: every second one still strikes
    every effect, at each of which there are three and more. Raises :class:`SimulationError` for the
    first run that fails.
    """
    explorer = _Explorer(scenario, check, without)
    clean = explorer.run(seed, Planned(()))
    explorer.judge(clean)
    firsts = list(_crash_points(0, clean.effects[0]))
    for fault in firsts[first::every]:
        explorer.judge(explorer.run(seed, Planned([fault])))
    chance = Chance(seed, "pairs")
    for _ in range(pairs if firsts else 0):
        one = chance.pick(firsts)
        recovery = explorer.run(seed, Planned([one])).effects[1]
        seconds = list(_crash_points(1, recovery))
        if seconds:
            explorer.judge(explorer.run(seed, Planned([one, chance.pick(seconds)])))
    return explorer.report


def repeat(
    scenario: Scenario,
    *,
    seed: int,
    plan: str = "",
    check: Scenario | None = None,
    without: tuple[str, ...] = (),
) -> Run:
    """Run ``scenario`` once under the faults of ``plan``, as a failure has printed them."""
    faults = [Fault.parse(word) for word in plan.split()]
    check = check or getattr(scenario, "check", None)
    return run(scenario, seed, Planned(faults), check=check, without=without)


class _Explorer:
    """Runs one scenario many times."""

    def __init__(
        self, scenario: Scenario, check: Scenario | None, without: tuple[str, ...]
    ) -> None:
        self.report = Report()
        self._scenario = scenario
        # A scenario may bring its own.
        self._check = check or getattr(scenario, "check", None)
        self._names_check = check is not None
        self._without = without

    def run(self, seed: int, injector: Drawn | Planned) -> Run:
        return run(self._scenario, seed, injector, check=self._check, without=self._without)

    def judge(self, done: Run) -> None:
        self.report.add(done)
        if done.error is not None:
            shortest = self._shrink(done)
            raise SimulationError(self._message(done, shortest), shortest) from shortest.error

    def _shrink(self, failed: Run) -> Run:
        """Drop faults while a run fails without them; then look for a single sufficient one."""
        # Listed faults strike where drawn ones did, unless the schedule was read from the draws.
        shortest = self.run(failed.seed, Planned(failed.faults))
        if shortest.error is None:
            return failed
        # A scenario that takes long may say how often it is run to find less.
        runs, runs_max = 0, getattr(self._scenario, "shrink_runs", SHRINK_RUNS_MAX)
        shrunk = True
        while shrunk and runs < runs_max:
            shrunk = False
            for index in reversed(range(len(shortest.faults))):
                kept = shortest.faults[:index] + shortest.faults[index + 1 :]
                tried = self.run(failed.seed, Planned(_closed_up(kept)))
                runs += 1
                if tried.error is not None and len(tried.faults) < len(shortest.faults):
                    shortest, shrunk = tried, True
                    break
                if runs >= runs_max:
                    break
        if len(shortest.faults) > 1 and runs < runs_max:
            clean = self.run(failed.seed, Planned(()))
            for fault in islice(_crash_points(0, clean.effects[0]), runs_max - runs):
                tried = self.run(failed.seed, Planned([fault]))
                if tried.error is not None:
                    return tried
        return shortest

    def _message(self, failed: Run, shortest: Run) -> str:
        plan = " ".join(map(str, shortest.faults))
        lines = shortest.trace.lines
        shown = lines[-TRACE_LINES_MAX:]
        if len(shown) < len(lines):
            shown = [f"({len(lines) - len(shown)} earlier lines)", *shown]
        error = shortest.error
        return "\n".join(
            [
                f"seed {failed.seed}: {type(error).__name__}: {error}",
                *getattr(error, "__notes__", ()),
                f"faults: {plan or 'none'} ({len(failed.faults)} before shrinking)",
                *(f"  {line}" for line in shown),
                f"repeat with: {self._command(failed.seed, plan)}",
            ]
        )

    def _command(self, seed: int, plan: str) -> str:
        name = name_of(self._scenario)
        if name is None:
            without = f", without={self._without}" if self._without else ""
            return f"repeat({self._scenario!r}, seed={seed}, plan={plan!r}{without})"
        words = [f"python -m ripple.testing {name} --seed {seed}"]
        if self._names_check:
            words.append(f"--check {name_of(self._check)}")
        words += [f"--without {name}" for name in self._without]
        words.append(f"--plan '{plan}'")
        return " ".join(words)


def _crash_points(life: int, names: tuple[str, ...]) -> Iterator[Fault]:
    crashable = [number for number, name in enumerate(names, 1) if "kill_before" in FAULTS_OF[name]]
    for number in crashable:
        for kind in CRASHES:
            if kind.endswith("after") and number != crashable[-1]:
                continue
            if kind in FAULTS_OF[names[number - 1]]:
                yield Fault(life, number, kind, SALT_LOST)
                if kind.startswith("power"):
                    yield Fault(life, number, kind, SALT_MIXED + number)


def _closed_up(faults: tuple[Fault, ...]) -> list[Fault]:
    """Renumber incarnations without gaps: with a crash dropped, later faults come one earlier."""
    order = {life: index for index, life in enumerate(dict.fromkeys(f.life for f in faults))}
    return [Fault(order[f.life], f.effect, f.kind, f.salt) for f in faults]
