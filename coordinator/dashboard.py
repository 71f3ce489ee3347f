"""The cluster as the dashboard shows it: one snapshot of what is known and counted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from coordinator import commands
from coordinator.dashboard_words import bottlenecks, verdict, waiting_for
from coordinator.messages import status_to_bytes
from coordinator.views import Standing
from ripple.assignment import worker_of
from ripple.assignment.version import PARTITIONS_MAX
from ripple.dashboard.contract import AskedError, Values
from ripple.dashboard.figures import (
    Rates,
    add_sums,
    middle,
    most,
    partitions_of,
    top_causes,
    total,
)
from ripple.dashboard.kept import checkpoints_of, letters_of
from ripple.dashboard.outputs import Outputs
from ripple.observing.places import places_of
from ripple.rpc.cluster_pb2 import StatusAnswer
from ripple.world.control import RefusedError

if TYPE_CHECKING:
    from coordinator.numbers import Numbers
    from coordinator.shell import Shell
    from coordinator.status import MemberStatus, Status
    from coordinator.timeline import Timeline
    from ripple.access import Right
    from ripple.observe.samples import Samples
    from ripple.observing import Places
    from ripple.world.ports import Clock, ObjectStore

_OF_OUTPUTS: dict[str, Callable[[Outputs, Mapping[str, str]], Awaitable[Values]]] = {
    "outputs": lambda outputs, _: outputs.names(),
    "table": Outputs.table,
    "tap": Outputs.tap,
}
# What can be commanded, with its arguments.
_COMMANDS: dict[str, tuple[type, tuple[str, ...]]] = {
    "freeze": (commands.Freeze, ()),
    "unfreeze": (commands.Unfreeze, ()),
    "pin": (commands.PinTo, ("partition", "worker")),
    "unpin": (commands.Unpin, ("partition",)),
    "drain": (commands.Drain, ("worker",)),
    "undrain": (commands.Undrain, ("worker",)),
    "move": (commands.Move, ("partition", "worker")),
}


class ClusterShown:
    """One cluster, as one replica sees it."""

    def __init__(
        self,
        shell: Shell,
        store: ObjectStore,
        clock: Clock,
        numbers: Numbers,
        *,
        name: str,
        place: str,
        timeline: Timeline,
        outputs: Callable[[Callable[[], Awaitable[Places]]], Outputs],
    ) -> None:
        """Show what ``shell`` knows. name: of the cluster; place: of the store, for people.

        outputs: makes what follows outputs, which asks where partitions are.
        """
        self.name = name
        self._shell = shell
        self._store = store
        self._place = place
        self._clock = clock
        self._numbers = numbers
        self._timeline = timeline
        self._rates = Rates()
        self._drawn: tuple[str, Values] | None = None
        self._since: dict[str, int] = {}
        self._outputs = outputs(self._places)

    async def snapshot(self) -> Values:
        """Return the cluster as it is now."""
        status, now_ns = self._shell.status, self._clock.monotonic_ns()
        head = {"kind": "cluster", "name": self.name, "store": self._place}
        if status is None:
            why = "The chain of assignments in the store has not been read yet."
            return head | {"verdict": {"level": "bad", "text": why, "cause": ""}}
        counted = await self._numbers.of(_asked(status))
        pipeline = await self._pipeline(status)
        partitions = self._partitions(status, counted, now_ns)
        totals = self._totals(counted, partitions, now_ns)
        workers = [_worker(one, counted.get(one.id)) for one in status.members]
        found = head | {
            "replica": status.replica,
            "replicas": list(status.replicas),
            "version": status.version,
            "cause": status.cause,
            "frozen": status.frozen,
            "verdict": verdict(status, partitions, totals),
            "problems": list(status.problems),
            "alerts": [{"worker": one.worker} | asdict(one.alert) for one in status.alerts],
            "workers": workers,
            "moves": [_move(one) for one in status.moves],
            "pins": [{"partition": p, "worker": w, "reason": r} for p, w, r in status.pins],
            "waiting": [{"worker": name, "why": why} for name, why in status.waiting],
            "partitions": partitions,
            "pipeline": pipeline,
            "edges": self._edges(totals.pop("edges"), now_ns),
            "totals": totals,
            "letters": top_causes(totals.pop("letters")),
            "bottlenecks": bottlenecks(workers, partitions, self._since, now_ns),
            "timeline": self._timeline.entries,
        }
        self._rates.turn()
        return found

    def _partitions(
        self, status: Status, counted: Mapping[str, Samples], now_ns: int
    ) -> list[Values]:
        said = {worker: partitions_of(samples) for worker, samples in counted.items()}
        moves = {move.partition: move for move in status.moves}
        pinned = {partition for partition, _, _ in status.pins}
        standing = {one.id: one.standing for one in status.members}
        found = []
        for number, one in enumerate(status.owners):
            worker = None if one.owner is None else worker_of(one.owner)
            values = said.get(worker or "", {}).get(number, {})
            row = {
                "partition": number,
                "stage": one.stage,
                "number": one.number,
                "owner": one.owner,
                "worker": worker,
                "since": one.since,
                "standby": one.standby,
                "pinned": number in pinned,
                **values,
                "rate_in": self._rate((number, one.owner, "in"), values.get("events"), now_ns),
                "rate_out": self._rate((number, one.owner, "out"), values.get("rows_out"), now_ns),
            }
            row["waiting_for"] = waiting_for(row, moves.get(number), standing.get(worker or ""))
            found.append(row)
        return found

    def _totals(
        self, counted: Mapping[str, Samples], partitions: list[Values], now_ns: int
    ) -> Values:
        found: Values = {}
        for worker, samples in sorted(counted.items()):
            add_sums(found, samples)
            for name in ("stabilizations", "cutoffs", "recomputes"):
                found.setdefault(name, 0)
            del worker
        found.setdefault("events", {})
        found.setdefault("letters", {})
        found.setdefault("edges", {})
        first = partitions[0]["stage"] if partitions else None
        lags = [one.get("lag_s") for one in partitions]
        return found | {
            "rate_in": total(one["rate_in"] for one in partitions if one["stage"] == first),
            "rate_out": total(one["rate_out"] for one in partitions),
            "cutoff_rate": self._rate("cutoffs", found.get("cutoffs"), now_ns),
            "recompute_rate": self._rate("recomputes", found.get("recomputes"), now_ns),
            "letter_rate": self._rate("letters", sum(found["letters"].values()), now_ns),
            "lag_s": most(lags),
            "lag_median_s": middle(lags),
            "commit_age_s": most(one.get("commit_age_s") for one in partitions),
            "checkpoint_age_s": most(one.get("checkpoint_age_s") for one in partitions),
            "debt": total(one.get("debt") for one in partitions),
            "answering": len(counted),
        }

    def _edges(self, edges: Mapping[str, float], now_ns: int) -> list[Values]:
        return [
            {"edge": name, "rows": rows, "rate": self._rate(("edge", name), rows, now_ns)}
            for name, rows in sorted(edges.items())
        ]

    def _rate(self, name: object, value: float | None, now_ns: int) -> float | None:
        return self._rates.rate(name, value, now_ns)

    async def _pipeline(self, status: Status) -> Values | None:
        """Return the plan as a graph, which some worker of the newest code is asked for once."""
        now = self._shell.state.now
        code = now.members[0].code.plan_hash if now is not None and now.members else ""
        if self._drawn is not None and self._drawn[0] == code:
            return self._drawn[1]
        for _, address in _asked(status):
            drawn = await self._numbers.page(address, "pipeline")
            if isinstance(drawn, dict):
                self._drawn = (code, drawn)
                break
        return None if self._drawn is None else self._drawn[1]

    # What is asked for by itself.

    async def answer(self, what: str, asked: Mapping[str, str]) -> Values:
        """Return what there is in the store."""
        if what == "checkpoints":
            return await checkpoints_of(self._store, self._clock.now_ns())
        if what == "letters":
            return await letters_of(self._store, asked, self._place)
        if what in _OF_OUTPUTS:
            try:
                return await _OF_OUTPUTS[what](self._outputs, asked)
            except ConnectionError as error:
                raise AskedError(str(error)) from error
        raise AskedError(f"there is nothing called {what[:40]} to ask for")

    async def _places(self) -> Places:
        status = self._shell.status
        if status is None:
            raise ConnectionError("the store has not been read yet")
        return places_of(StatusAnswer.FromString(status_to_bytes(status)), "here")

    async def close(self) -> None:
        """Follow no outputs any more."""
        await self._outputs.close()

    def needs(self, command: Mapping[str, Any]) -> Right:
        """Return what a command takes."""
        return commands.right_of(_command(command, ""))

    async def command(self, command: Mapping[str, Any], who: str) -> Values:
        """Do it, in the name of somebody, and wait until a version says so."""
        made = _command(command, who)
        try:
            version = await self._shell.command(made)
        except RefusedError as error:
            raise AskedError(str(error)) from error
        return {"done": str(made), "version": version}


def _command(said: Mapping[str, Any], who: str) -> commands.Command:
    found = _COMMANDS.get(str(said.get("command")))
    if found is None:
        raise AskedError(f"there is no such command: there are {', '.join(_COMMANDS)}")
    make, names = found
    values: list[Any] = []
    for name in names:
        given = said.get(name)
        if name == "partition" and not (type(given) is int and 0 <= given < PARTITIONS_MAX):
            raise AskedError("partition is no number from 0 on")
        if name == "worker" and not (isinstance(given, str) and given):
            raise AskedError("worker is no name")
        values.append(given)
    reason = said.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        raise AskedError("a command needs a reason: others will ask")
    made: commands.Command = make(*values, f"{reason.strip()} ({who})" if who else reason.strip())
    return made


def _asked(status: Status) -> list[tuple[str, str]]:
    """Return whom to ask, and where: members that may still answer."""
    return [
        (one.id, address)
        for one in status.members
        if one.standing is not Standing.DEAD
        for purpose, address in one.addresses
        if purpose == "metrics"
    ]


def _worker(one: MemberStatus, samples: Samples | None) -> Values:
    full = one.backpressure
    words = None
    if samples is not None:
        words = samples.numbers.get(("ripple_system_heap_words", (one.id,)))
    return {
        "id": one.id,
        "since": one.incarnation,
        "standing": one.standing.value,
        "leaving": one.is_leaving,
        "silent_ms": one.silent_ms,
        "load": one.load,
        "partitions": one.partitions,
        "addresses": dict(one.addresses),
        "queue": None if full is None else full.queue,
        "fill": None if full is None else full.fill,
        "level": None if full is None else full.level.name.lower(),
        "memory_bytes": None if words is None else words * 8,
        "answers": samples is not None,
        "restarts": None
        if samples is None
        else _sum(samples, "ripple_worker_process_restarts_total"),
    }


def _sum(samples: Samples, name: str) -> float:
    return sum(value for (one, _), value in samples.numbers.items() if one == name)


def _move(one: Any) -> Values:
    return {
        "partition": one.partition,
        "source": one.source,
        "target": one.target,
        "phase": one.phase.value,
        "times_near": one.times_near,
    }
