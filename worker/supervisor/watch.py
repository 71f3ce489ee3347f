"""A worker's own alerts: evaluated once a second, logged, and reported with heartbeats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.control.rpc.membership_messages import MISFIT
from ripple.control.telemetry.alerts import Alerts, Seen, State
from ripple.control.telemetry.levels import Level
from ripple.core import events
from worker.supervisor.deaths import Deaths

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.control.assignment import Alert
    from ripple.control.telemetry.alerts import AlertThresholds, RuleStatus
    from ripple.control.telemetry.log import Log
    from ripple.control.telemetry.samples import Samples
    from ripple.world.ports import Clock

LOOK_S = 1.0
NS = 1_000_000_000


class Watch:
    """The alerts of one worker."""

    def __init__(self, clock: Clock, thresholds: AlertThresholds | None = None) -> None:
        self._clock = clock
        self._alerts = Alerts(thresholds)
        self._answered_ns = clock.monotonic_ns()
        self._refused = ""
        self.deaths = Deaths(clock)

    def on_event(self, event: events.Event) -> None:
        """Take an event of the membership."""
        match event:
            case events.CoordinatorAnswered():
                self._answered_ns = self._clock.monotonic_ns()
            case events.JoinRefused(_, reason) if MISFIT in reason:
                self._refused = reason
            case events.Joined() | events.JoinPostponed():
                self._refused = ""

    async def run(self, samples: Callable[[], Samples], log: Log) -> None:
        """Evaluate periodically, until cancelled."""
        while True:
            for one in self.look(samples()):
                _say(one, log)
            await self._clock.sleep(LOOK_S)

    def look(self, samples: Samples) -> list[RuleStatus]:
        """Evaluate once; return the alerts that have begun or ceased to fire."""
        now_ns = self._clock.monotonic_ns()
        silent_s = (now_ns - self._answered_ns) / NS
        seen = Seen(samples, silent_s, self._refused, self.deaths.report)
        return self._alerts.look(seen, now_ns)

    @property
    def firing(self) -> tuple[Alert, ...]:
        """The alerts that fire."""
        return self._alerts.firing

    @property
    def listed(self) -> list[dict[str, Any]]:
        """All rules and their states, for a page."""
        now_ns = self._clock.monotonic_ns()
        return [
            {
                "name": one.rule.name,
                "severity": one.rule.severity,
                "state": one.state.value,
                "seconds": None if one.state is State.QUIET else (now_ns - one.since_ns) / NS,
                "cause": one.cause,
            }
            for one in self._alerts.standings.values()
        ]


def _say(one: RuleStatus, log: Log) -> None:
    if one.state is State.FIRING:
        level = Level.ERROR if one.rule.severity == "critical" else Level.WARN
        log.say(f"alert {one.rule.name}: {one.cause}", level)
    else:
        log.say(f"alert {one.rule.name} is over")
