"""Detects that a cluster cannot reach the end of its input, from its coordinators' pages."""

from __future__ import annotations

import builtins
import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from ripple.cli.lib.client_options import page_at
from ripple.core.errors import InputAwayError, OutputAwayError, RippleError
from ripple.storage.fenced import FencedError
from ripple.world.broker import BrokerError, UnknownOutcomeError
from ripple.world.broker import FencedError as WriterFencedError
from ripple.world.control import ControlError, DeadlineError, UnreachableError
from ripple.world.errors import DiskFullError, DiskLockedError, StoreError, SyncFailedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# A failure that repeats for so long with the same message does not pass.
STUCK_S = 30.0
_MISFIT_ALERT = "SchemaMismatch"
_PASSING: tuple[type[RippleError], ...] = (
    InputAwayError,
    OutputAwayError,
    FencedError,
    WriterFencedError,
    BrokerError,
    UnknownOutcomeError,
    ControlError,
    DeadlineError,
    UnreachableError,
    DiskFullError,
    DiskLockedError,
    SyncFailedError,
    StoreError,
)
PASSING = frozenset(one.__name__ for one in _PASSING)


class Stuck:
    """Records since when each partition fails, or each worker is refused, for the same reason."""

    def __init__(self) -> None:
        self._since_s: dict[tuple[str, str], float] = {}

    def seen(self, failing: Mapping[str, str], now_s: float) -> str | None:
        """Take the present failures by name; return one that does not pass, or None."""
        before, self._since_s = self._since_s, {}
        for one in failing.items():
            self._since_s[one] = before.get(one, now_s)
        lasting = sorted(one for one, at_s in self._since_s.items() if now_s - at_s >= STUCK_S)
        if not lasting:
            return None
        (who, why), more = lasting[0], len(lasting) - 1
        others = f"; {more} more fail as well" if more else ""
        return f"{who} fails repeatedly: {why}{others}"


async def failing(addresses: Sequence[str]) -> dict[str, str]:
    """Return failures by name, from the health ports of coordinators that answer.

    Failures that may pass, such as an unavailable server, are left out.
    """
    found: dict[str, str] = {}
    for address in addresses:
        with suppress(OSError, ValueError, KeyError, TypeError):
            problems = json.loads(await page_at(address, "/health")).get("problems", ())
            alerts = json.loads(await page_at(address, "/alerts"))
            found |= of_problems(problems)
            found |= {one["worker"]: one["cause"] for one in alerts if one["name"] == _MISFIT_ALERT}
    return found


def of_problems(problems: Sequence[str]) -> dict[str, str]:
    """Return by partition the failures that do not pass by waiting."""
    from ripple.control.rpc.membership_messages import FAILED  # noqa: PLC0415 - of an extra, and help needs none

    problem = rf"(?P<who>partition \d+) .*?{FAILED}(?P<kind>\w+): (?P<why>.*)"
    matches = [match for one in problems if (match := re.fullmatch(problem, one, re.DOTALL))]
    return {match["who"]: match["why"] for match in matches if not _passes(match["kind"])}


def _passes(kind: str) -> bool:
    """Return whether errors of a class may pass: those of the system and of servers."""
    known = getattr(builtins, kind, None)
    is_systems = isinstance(known, type) and issubclass(known, OSError | MemoryError)
    return kind in PASSING or is_systems
