"""The health of a cluster in sentences: its state, waiting partitions, bottlenecks."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from coordinator.decisions.views import HealthState
from ripple.control.assignment import Level, Phase

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from coordinator.decisions.status import MoveStatus, Status
    from ripple.client.dashboard.contract import Values

BOTTLENECKS_MAX = 8
# A queue below this level is no bottleneck: it drains as it fills.
FILL_MIN = 0.2
LOAD_MIN = 0.8
OLD_S = 20.0
_CAUSES = {
    "outboxes": "a worker that receives from it is slow",
    "uncommitted": "outputs commit slowly: the disk, the broker or the store",
    "divided": "the next stage takes repartitioned records slowly",
}


def verdict(status: Status, partitions: Sequence[Values], totals: Values) -> dict[str, str]:
    """Return the state of the cluster in one sentence, with its cause: the worst that applies."""
    for level, text, cause in _verdicts(status, partitions, totals):
        return {"level": level, "text": text, "cause": cause}
    workers, count = len(status.members), status.partitions
    return {
        "level": "good",
        "text": f"All {count} partitions are computed, by {_many(workers, 'worker')}.",
        "cause": "",
    }


_Verdict: TypeAlias = "tuple[str, str, str]"


def _verdicts(status: Status, partitions: Sequence[Values], totals: Values) -> Iterator[_Verdict]:
    first = next(iter(status.problems), "")
    if totals.get("digest_mismatches"):
        yield (
            "bad",
            "A restored table differs from what was committed: its partition has stopped.",
            "See DataLossDetected in docs/operations.md before anything is restarted.",
        )
    if not status.members:
        text = "All workers have left" if status.version else "No worker has joined yet"
        yield "bad", f"{text}: nothing is computed.", status.cause
    if status.unowned:
        text = f"{status.unowned} of {status.partitions} partitions have no owner."
        yield "bad", text, first or status.cause
    for one in status.alerts:
        if one.alert.severity == "critical":
            yield "bad", f"{one.alert.name} at {one.worker}.", one.alert.cause
    yield from _of_workers(status, first)
    yield from _of_partitions(status, partitions)
    if status.waiting:
        name, why = status.waiting[0]
        yield "warn", f"{name} waits to join.", why
    if status.alerts:
        one = status.alerts[0]
        yield "warn", f"Everything is computed, but {one.alert.name} fires.", one.alert.cause
    if status.problems:
        yield "warn", "Everything is computed, but there are problems.", first


def _of_workers(status: Status, first: str) -> Iterator[_Verdict]:
    dead = [one.id for one in status.members if one.standing is HealthState.DEAD and one.partitions]
    if dead:
        yield "bad", f"{', '.join(dead)} is silent, and owns partitions.", first
    silent = [one.id for one in status.members if one.standing is not HealthState.ACTIVE]
    if silent:
        yield "warn", f"{', '.join(silent)} has not been heard lately.", first
    slow = [
        one.id
        for one in status.members
        if one.backpressure is not None and one.backpressure.level >= Level.SLOW
    ]
    if slow:
        yield "warn", f"{', '.join(slow)} takes in less: a queue is full.", "See the bottlenecks."


def _of_partitions(status: Status, partitions: Sequence[Values]) -> Iterator[_Verdict]:
    late = [one for one in partitions if one.get("live") is not None and not one["live"]]
    if late:
        causes = sorted({one["waiting_for"] for one in late if one["waiting_for"]})
        text = f"{len(late)} of {status.partitions} partitions are catching up."
        yield "warn", text, "; ".join(causes[:3])
    if status.moves:
        moving = _many(len(status.moves), "partition")
        yield "warn", f"{moving} on the move; everything is computed.", status.cause
    if status.frozen is not None:
        yield "warn", "Frozen: no moves and no joins.", status.frozen


def waiting_for(row: Values, move: MoveStatus | None, standing: HealthState | None) -> str:
    """Return the cause of a partition's wait, in words; "" if it does not wait."""
    if row["owner"] is None:
        return "an owner"
    if standing is HealthState.DEAD or standing is HealthState.SUSPECTED:
        return f"{row['worker']}, which is {standing.value}"
    if move is not None:
        if move.phase is Phase.WARMING:
            near = f", {move.times_near} times near enough" if move.times_near else ""
            return f"{move.target} to catch up{near}"
        return f"{move.target} to be live"
    if row.get("recovery_remaining"):
        return f"a replay: {row['recovery_remaining']:,.0f} events to go"
    if row.get("live") == 0:
        return "its owner to restore it"
    return ""


def bottlenecks(
    workers: Sequence[Values], partitions: Sequence[Values], since: dict[str, int], now_ns: int
) -> list[Values]:
    """Return bottlenecks, worst first. since: when each was first seen; kept from tick to tick."""
    found: list[Values] = []
    for one in workers:
        if one["fill"] is not None and one["fill"] >= FILL_MIN:
            where = f"{one['id']}: {one['queue']}"
            why = _CAUSES.get(one["queue"] or "", "its consumer is slow")
            found.append({"where": where, "share": one["fill"], "cause": why, "what": "queue"})
        if one["load"] is not None and one["load"] >= LOAD_MIN:
            why = "a process computes without a pause: more partitions, processes or workers"
            found.append(
                {"where": f"{one['id']}: load", "share": one["load"], "cause": why, "what": "load"}
            )
    for row in partitions:
        age_s = row.get("commit_age_s")
        if row.get("live") and age_s is not None and age_s > OLD_S and row["rate_in"]:
            found.append(
                {
                    "where": f"partition {row['partition']}: commit",
                    "share": min(1.0, age_s / 60),
                    "cause": f"takes in events, and has committed nothing for {age_s:.0f} s",
                    "what": "commit",
                }
            )
    found.sort(key=lambda one: (-one["share"], one["where"]))
    del found[BOTTLENECKS_MAX:]
    names = {one["where"] for one in found}
    for name in [name for name in since if name not in names]:
        del since[name]
    for one in found:
        one["for_s"] = (now_ns - since.setdefault(one["where"], now_ns)) / 1e9
    return found


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
