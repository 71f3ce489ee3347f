"""One run of ``ripple run``, as its own process shows it on the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.client.dashboard.contract import AskedError
from ripple.client.dashboard.figures import Rates, add_sums, partitions_of, top_causes
from ripple.client.dashboard.nodes import graph_of
from ripple.client.dashboard.stored import checkpoints_of, letters_of
from ripple.control.telemetry.measures import Measures
from ripple.core import events
from ripple.model.pipeline.drawing import drawing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.client.dashboard.contract import Values
    from ripple.core.access import Right
    from ripple.core.events import Event
    from ripple.model.pipeline.plan import Plan
    from ripple.world import World
    from ripple.world.ports import ObjectStore

NAME = "this run"
LINES_KEPT = 200
OWNER = "here"
_NO_ROWS = "the dashboard of a run has no rows of outputs; they are in its sinks"


class RunShown:
    """One run; ``on_event`` receives its task's events."""

    def __init__(self, plan: Plan, store: ObjectStore, world: World, place: str) -> None:
        """Show the given plan. place: the store's URI, for people."""
        self.name = plan.name
        self._store = store
        self._clock = world.clock
        self._place = place
        self._measures = Measures(NAME, world.clock)
        self._drawing = drawing(plan)
        self._rates, self._node_rates = Rates(), Rates()
        self._epoch: int | None = None
        self._doing = "begins"
        self._is_live = False
        self._consumed = self._rows = 0
        self._lines: list[Values] = []

    def on_event(self, event: Event, line: str | None) -> None:
        """Handle an event, and its text if it has one."""
        self._measures.on_event(0, event)
        match event:
            case events.Started(epoch=epoch):
                self._epoch = epoch
            case events.Replaying():
                self._doing = "replays"
            case events.Restored():
                self._doing, self._is_live = "", True
            case events.Committed(rows=rows):
                self._rows += rows
            case events.Diverged():
                self._doing = "stopped: a restored table differs from the committed one"
            case _:
                pass
        if line is not None:
            self._lines.insert(0, {"time_ms": self._clock.now_ns() // 1_000_000, "what": line})
            del self._lines[LINES_KEPT:]

    def took(self, consumed: int) -> None:
        """Count records that the run has read."""
        self._consumed = consumed

    async def snapshot(self) -> Values:
        """Return a snapshot of the run."""
        now_ns = self._clock.monotonic_ns()
        samples, totals = self._measures.samples((0,)), dict[str, Any]()
        add_sums(totals, samples)
        for name in ("recomputes", "cutoffs"):
            totals.setdefault(name, 0)
        row = {
            "partition": 0,
            "stage": "run",
            "number": 0,
            "owner": OWNER,
            "worker": OWNER,
            "live": self._is_live,
            "epoch": self._epoch,
            "events": self._consumed,
            "rows_out": self._rows,
            "waiting_for": self._doing,
            **partitions_of(samples).get(0, {}),
            "rate_in": self._rates.rate("in", self._consumed, now_ns),
            "rate_out": self._rates.rate("out", self._rows, now_ns),
        }
        totals |= {
            "rate_in": row["rate_in"],
            "rate_out": row["rate_out"],
            "cutoff_rate": self._rates.rate("cutoffs", totals["cutoffs"], now_ns),
            "recompute_rate": self._rates.rate("recomputes", totals["recomputes"], now_ns),
            "letter_rate": self._rates.rate("letters", sum(totals["letters"].values()), now_ns),
            "lag_s": row.get("lag_s"),
            "lag_median_s": row.get("lag_s"),
            "commit_age_s": row.get("commit_age_s"),
            "checkpoint_age_s": row.get("checkpoint_age_s"),
            "debt": row.get("debt"),
        }
        totals.pop("edges")
        return {
            "kind": "run",
            "name": self.name,
            "store": self._place,
            "verdict": self._verdict(),
            "partitions": [row],
            "pipeline": self._drawing,
            "letters": top_causes(totals.pop("letters")),
            "totals": totals,
            "bottlenecks": [],
            "timeline": self._lines,
        }

    def _verdict(self) -> dict[str, str]:
        if self._is_live and not self._doing:
            return {"level": "good", "text": f"{self.name} is running here.", "cause": ""}
        level = "bad" if self._doing.startswith("stopped") else "warn"
        return {"level": level, "text": f"{self.name} {self._doing}.", "cause": ""}

    async def answer(self, what: str, asked: Mapping[str, str]) -> Values:
        """Return checkpoints or letters of the store, or the work of each node."""
        if what == "checkpoints":
            return await checkpoints_of(self._store, self._clock.now_ns())
        if what == "letters":
            return await letters_of(self._store, asked, self._place)
        if what == "graph":
            parts = [{"partition": 0, **one} for one in self._measures.inspected((0,)).values()]
            return graph_of(parts, self._node_rates, self._clock.monotonic_ns())
        if what == "outputs":
            raise AskedError(_NO_ROWS)
        raise AskedError(f"there is nothing called {what[:40]}")

    async def rows(self, asked: Mapping[str, str]) -> tuple[str, bytes]:
        """Refuse: a run shows no rows."""
        del asked
        raise AskedError(_NO_ROWS)

    async def query(self, sql: str) -> Values:
        """Refuse: a run shows no rows."""
        del sql
        raise AskedError(_NO_ROWS)

    def needs(self, command: Mapping[str, Any]) -> Right:
        """Refuse: a run takes no commands."""
        raise AskedError(f"a run takes no commands, not even {str(command.get('command'))[:40]}")

    async def command(self, command: Mapping[str, Any], who: str) -> Values:
        """Refuse: a run takes no commands."""
        raise AskedError(f"a run takes no commands of {who}: {str(command)[:40]}")
