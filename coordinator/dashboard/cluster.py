"""The cluster as the dashboard shows it: one snapshot of its state and counters."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from coordinator.dashboard.commands import command_of
from coordinator.dashboard.graphs import Graphs
from coordinator.dashboard.letter_retry import Retry, Retrying
from coordinator.dashboard.runbook import RUNBOOK
from coordinator.dashboard.slowed import Slowed
from coordinator.dashboard.words import bottlenecks, verdict, waiting_for
from coordinator.decisions.commands import right_of
from coordinator.decisions.views import HealthState
from coordinator.service.messages import status_to_bytes
from ripple.client.dashboard.contract import AskedError, Values
from ripple.client.dashboard.figures import (
    Rates,
    add_sums,
    middle,
    most,
    partitions_of,
    top_causes,
    total,
)
from ripple.client.dashboard.outputs import Outputs
from ripple.client.dashboard.stored import checkpoints_of, letters_of
from ripple.client.outputs.discovery import Endpoints, endpoints_of
from ripple.control.assignment import worker_of
from ripple.control.rpc.cluster_pb2 import StatusAnswer
from ripple.core.access import Right
from ripple.world.control import RefusedError

if TYPE_CHECKING:
    from coordinator.dashboard.timeline import Timeline
    from coordinator.dashboard.worker_metrics import WorkerMetrics
    from coordinator.decisions.status import MemberStatus, Status
    from coordinator.service.shell import Shell
    from ripple.control.telemetry.samples import Samples
    from ripple.world.ports import Clock, ObjectStore

_OF_OUTPUTS: dict[str, Callable[[Outputs, Mapping[str, str]], Awaitable[Values]]] = {
    "outputs": lambda outputs, _: outputs.names(),
    "table": Outputs.table,
    "tap": Outputs.tap,
    "row": Outputs.row,
}


class ClusterShown:
    """One cluster, as one replica sees it."""

    def __init__(
        self,
        shell: Shell,
        store: ObjectStore,
        clock: Clock,
        numbers: WorkerMetrics,
        *,
        name: str,
        place: str,
        timeline: Timeline,
        outputs: Callable[[Callable[[], Awaitable[Endpoints]]], Outputs],
        credential: Callable[[], str] = lambda: "",
        retry_source: str = "",
        address: str = "",
        settings: Sequence[Values] = (),
    ) -> None:
        """Show the cluster of ``shell``. name: of the cluster; place: of the store, for people.

        settings: in force here. address: of this replica for commands, "" where it is their
        default. retry_source: where records of retried dead letters are appended, "" for nowhere.
        credential: returns the credential for output subscriptions. outputs: makes the output
        subscriber, given the locations of partitions.
        """
        self.name = name
        self._shell = shell
        self._store = store
        self._place = place
        self._address = address
        self._clock = clock
        self._numbers = numbers
        self._timeline = timeline
        self._rates = Rates()
        self._drawn: tuple[str, Values] | None = None
        self._since: dict[str, int] = {}
        self._slowed = Slowed()
        self._settings_here = settings
        self._retry_source = retry_source
        self._retrying = Retrying(place, retry_source)
        self._credential = credential
        self._graphs = Graphs(numbers, clock)
        self._places_as_of: tuple[object, Endpoints] = (None, Endpoints())
        self._outputs = outputs(self._places)

    async def snapshot(self) -> Values:
        """Return the present snapshot."""
        status, now_ns = self._shell.status, self._clock.monotonic_ns()
        head = {
            "kind": "cluster",
            "name": self.name,
            "store": self._place,
            "coordinator": self._address,
        }
        if status is None:
            why = "The chain of assignments in the store has not been read yet."
            return head | {"verdict": {"level": "bad", "text": why, "cause": ""}}
        counted = await self._numbers.of(_asked(status))
        pipeline = await self._pipeline(status, counted)
        partitions = self._partitions(status, counted, now_ns)
        totals = self._totals(counted, partitions, now_ns)
        workers = [
            _worker(one, counted.get(one.id))
            | {"slowed": self._slowed.share(one.id, one.backpressure, now_ns)}
            for one in status.members
        ]
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
            # Downstream stages process the same events: only the first stage counts.
            "debt": most(
                [
                    total(one.get("debt") for one in partitions if one["stage"] == first),
                    *(one.get("debt") for one in partitions if one["stage"] != first),
                ]
            ),
            "answering": len(counted),
        }

    def _edges(self, edges: Mapping[str, float], now_ns: int) -> list[Values]:
        return [
            {"edge": name, "rows": rows, "rate": self._rate(("edge", name), rows, now_ns)}
            for name, rows in sorted(edges.items())
        ]

    def _rate(self, name: object, value: float | None, now_ns: int) -> float | None:
        return self._rates.rate(name, value, now_ns)

    async def _pipeline(self, status: Status, counted: Mapping[str, Samples]) -> Values | None:
        """Return the plan as a graph, fetched once per code from a worker."""
        now = self._shell.state.now
        code = now.members[0].code.plan_hash if now is not None and now.members else ""
        if self._drawn is not None and self._drawn[0] == code:
            return self._drawn[1]
        for _, address in (one for one in _asked(status) if one[0] in counted):
            drawn = await self._numbers.page(address, "pipeline")
            if isinstance(drawn, dict):
                self._drawn = (code, drawn)
                break
        return None if self._drawn is None else self._drawn[1]

    # Requested separately.

    async def answer(self, what: str, asked: Mapping[str, str]) -> Values:
        """Return a listing of the store."""
        if what == "checkpoints":
            return await checkpoints_of(self._store, self._clock.now_ns())
        if what == "letters":
            found = await letters_of(self._store, asked, self._place)
            return found | {"retry_source": self._retry_source}
        if what == "runbook":
            return {"text": RUNBOOK.get(asked.get("alert", ""), "")}
        if what == "lines":
            return {"lines": [asdict(one) for one in self._shell.worker_lines.of(_name(asked))]}
        if what == "settings":
            return {"processes": await self._settings()}
        if what == "graph":
            status = self._shell.status
            return await self._graphs.of([] if status is None else _asked(status, "health"))
        if what in _OF_OUTPUTS:
            with _answering():
                return await _OF_OUTPUTS[what](self._outputs, asked)
        raise AskedError(f"there is no listing called {what[:40]}")

    async def _settings(self) -> list[Values]:
        """Return the settings in force, of this coordinator and of each worker that answers."""
        status = self._shell.status
        workers = [] if status is None else _asked(status)
        pages = await asyncio.gather(
            *(self._numbers.page(address, "settings") for _, address in workers)
        )
        return [
            {"process": "coordinator", "settings": list(self._settings_here)},
            *(
                {"process": name, "settings": page}
                for (name, _), page in zip(workers, pages, strict=True)
                if isinstance(page, list)
            ),
        ]

    async def rows(self, asked: Mapping[str, str]) -> tuple[str, bytes]:
        """Return an output as an Arrow stream, and its version."""
        with _answering():
            return await self._outputs.stream(asked)

    async def query(self, sql: str) -> Values:
        """Return the result of an SQL statement over the outputs."""
        with _answering():
            return await self._outputs.query(sql)

    async def _places(self) -> Endpoints:
        """Return the locations of partitions, by a version of the assignment."""
        now = self._shell.state.now
        if now is None:
            raise ConnectionError("the store has not been read yet")
        if self._places_as_of[0] is not now:
            status = self._shell.status
            assert status is not None
            answer = StatusAnswer.FromString(status_to_bytes(status))
            self._places_as_of = now, endpoints_of(answer, "here")
        return replace(self._places_as_of[1], credential=self._credential())

    async def close(self) -> None:
        """Unsubscribe from all outputs."""
        await self._outputs.close()

    def needs(self, command: Mapping[str, Any]) -> Right:
        """Return the role that a command takes."""
        if command.get("command") == "retry":
            return Right.OPERATE
        return right_of(command_of(command, ""))

    async def command(self, command: Mapping[str, Any], who: str) -> Values:
        """Run a command on behalf of a user, and wait until a version contains it."""
        if command.get("command") == "retry":
            return await self._retrying.do(Retry.of(command, who))
        made = command_of(command, who)
        try:
            version = await self._shell.command(made)
        except RefusedError as error:
            raise AskedError(str(error)) from error
        return {"done": str(made), "version": version}


@contextmanager
def _answering() -> Iterator[None]:
    """Report a worker that does not answer as such, and not as an error of ours."""
    try:
        yield
    except (ConnectionError, TimeoutError) as error:
        raise AskedError(str(error) or "no worker answers in time") from error


def _asked(status: Status, page: str = "metrics") -> list[tuple[str, str]]:
    """Return the names and addresses of members that may still answer."""
    return [
        (one.id, address)
        for one in status.members
        if one.standing is not HealthState.DEAD
        for purpose, address in one.addresses
        if purpose == page
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


def _name(asked: Mapping[str, str]) -> str:
    return asked.get("worker", "")


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
