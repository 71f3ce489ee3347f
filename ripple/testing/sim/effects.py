"""The gate through which every simulated effect goes: counted, traced, struck by faults."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, TypeVar

from ripple.testing.sim.chance import Chance
from ripple.testing.sim.faults import Planned

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.testing.sim.faults import Fault, Injector

T = TypeVar("T")


class Crash(BaseException):
    """The simulated process has died here. No handler of the code under test may catch it."""


class Trace:
    """The events of a run, line by line."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, line: str) -> None:
        """Add a line."""
        self.lines.append(line)

    def digest(self) -> str:
        """Return a hash of all lines."""
        return blake2b("\n".join(self.lines).encode(), digest_size=16).hexdigest()


class Effects:
    """The effects of one incarnation.

    Invariant: after a crash nothing has an effect any more, ``finally`` blocks included.
    """

    def __init__(self, life: int, injector: Injector, trace: Trace) -> None:
        self.life = life
        self.count = 0
        self.names: list[str] = []
        self.landed: list[Fault] = []
        self.crash: Fault | None = None
        self.invariants: list[Callable[[], None]] = []
        self._injector = injector
        self.trace = trace

    def run(
        self,
        name: str,
        subject: str,
        act: Callable[[], T],
        fail: Callable[[Fault, Chance], None] | None = None,
        tear: Callable[[Chance], None] | None = None,
    ) -> T:
        """Carry out one effect, unless a fault decides otherwise.

        ``fail`` is called for faults that are no crash: it raises the effect's error, or returns to
        let it happen. ``tear`` does part of the effect.
        """
        fault = self.arrive(name, subject)
        result = act() if fault is None else self._struck(fault, act, fail, tear)
        self.check_invariants()
        return result

    def after_step(self) -> None:
        """Check the invariants after each step of a task. Raises Crash once dead."""
        if self.crash is not None:
            raise Crash
        self.check_invariants()

    def check_invariants(self) -> None:
        """Check the invariants."""
        for invariant in self.invariants:
            invariant()

    def heal(self) -> None:
        """Let nothing more go wrong."""
        self._injector = Planned(())

    def arrive(self, name: str, subject: str) -> Fault | None:
        """Count and trace an effect; return the fault that strikes it. Raises Crash once dead."""
        if self.crash is not None:
            raise Crash
        self.count += 1
        self.names.append(name)
        fault = self._injector.at(self.life, self.count, name)
        if fault is None:
            self.trace.note(f"{self.life}.{self.count} {name} {subject}")
        else:
            self.landed.append(fault)
            self.trace.note(f"{self.life}.{self.count} {name} {subject} !{fault.kind}:{fault.salt}")
        return fault

    def die(self, fault: Fault) -> None:
        """End this incarnation. Raises Crash."""
        self.crash = fault
        raise Crash

    def _struck(
        self,
        fault: Fault,
        act: Callable[[], T],
        fail: Callable[[Fault, Chance], None] | None,
        tear: Callable[[Chance], None] | None,
    ) -> T:
        cause, _, moment = fault.kind.rpartition("_")
        if cause not in ("kill", "power"):
            if fail is not None:
                fail(fault, Chance(fault.salt, fault.kind))
            return act()
        if moment == "after":
            act()
        elif moment == "torn" and tear is not None:
            tear(Chance(fault.salt, "tear"))
        self.die(fault)
        raise AssertionError("die() has raised")
