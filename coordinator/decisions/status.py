"""The status of the cluster as one replica knows it: for pages, commands and metrics."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinator.decisions.compatibility import input_problems
from coordinator.decisions.limits import MS
from coordinator.decisions.scaling import Scale
from coordinator.decisions.views import HealthState, WorkerHealth, is_mass_silence
from ripple.control.assignment import Alert, Assignment, Backpressure, Phase, stage_names, worker_of
from ripple.control.assignment.bounds import Growing, Names, Who
from ripple.control.rpc.membership_messages import FAILED

if TYPE_CHECKING:
    from coordinator.decisions.state import Coordinator

FAILING_SHOWN = 8


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """One member, as all fresh views see it.

    load, 0 to 1, and backpressure are as last reported; None: not yet.
    """

    id: str
    incarnation: int
    standing: HealthState
    silent_ms: Growing
    load: float | None
    partitions: int
    is_leaving: bool
    addresses: Names
    backpressure: Backpressure | None = None


@dataclass(frozen=True, slots=True)
class AlertStatus:
    """An alert that fires: reported by a worker, or raised by a coordinator."""

    worker: str
    alert: Alert


@dataclass(frozen=True, slots=True)
class MoveStatus:
    """A planned move in progress. times_near: how often in a row its standby was near enough."""

    partition: int
    source: str
    target: str
    phase: Phase
    times_near: int


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """A partition and its owner. stage, number: position in the plan; owner, standby: processes."""

    stage: str
    number: int
    owner: str | None
    since: int
    standby: str | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """The cluster, as one replica knows it.

    version, cause: of the newest version of the assignment, and why it came. replicas: the others
    with fresh views. waiting: candidates, and why they wait. problems: for an operator to look at.
    owners: by partition. alerts: firing ones, by worker and name. scale: how many workers are
    wanted; None while the demand on one of them is unknown.
    """

    replica: str
    version: int
    cause: str
    frozen: str | None
    partitions: int
    unowned: int
    members: tuple[MemberStatus, ...]
    moves: tuple[MoveStatus, ...]
    pins: tuple[tuple[int, str, str], ...]
    replicas: tuple[str, ...]
    waiting: tuple[tuple[str, str], ...]
    problems: tuple[str, ...]
    owners: tuple[PartitionStatus, ...] = ()
    alerts: tuple[AlertStatus, ...] = ()
    scale: Scale | None = None

    @property
    def summary(self) -> tuple[int, int, int, int]:
        """Active workers, workers, partitions, and the version of the assignment."""
        active = sum(member.standing is HealthState.ACTIVE for member in self.members)
        return active, len(self.members), self.partitions, self.version


def status_of(coordinator: Coordinator, now_ns: int) -> Status | None:
    """Return the status; None before the chain was read."""
    now = coordinator.now
    if now is None:
        return None
    verdicts = coordinator.verdicts(now_ns)
    reports = coordinator.progress.reports
    owned = Counter(worker_of(share.owner) for share in now.shares if share.owner is not None)
    members = tuple(
        MemberStatus(
            id=member.id,
            incarnation=member.incarnation,
            standing=verdict.standing,
            silent_ms=verdict.silent_ns // MS,
            load=reports[who].load if who in reports else None,
            partitions=owned[member.id],
            is_leaving=member.is_leaving,
            addresses=member.addresses,
            backpressure=reports[who].backpressure if who in reports else None,
        )
        for who, verdict in verdicts.items()
        for member in (now.by_id[who[0]],)
    )
    return Status(
        replica=coordinator.replica,
        version=coordinator.newest_number,
        cause=now.cause,
        frozen=now.frozen,
        partitions=len(now.shares),
        unowned=sum(share.owner is None for share in now.shares),
        members=members,
        moves=_moves(coordinator, now),
        pins=tuple((pin.partition, pin.worker, pin.reason) for pin in now.pins),
        replicas=tuple(view.replica for view in coordinator.detector.fresh(now_ns)),
        waiting=_waiting(coordinator, now, now_ns),
        problems=tuple(_problems(coordinator, now, verdicts)),
        owners=_owners(now),
        alerts=_alerts(coordinator, verdicts),
        scale=coordinator.scaling.scale,
    )


def _alerts(coordinator: Coordinator, verdicts: dict[Who, WorkerHealth]) -> tuple[AlertStatus, ...]:
    """Return the alerts that workers report, and the two of the seven rules that they cannot."""
    found = [
        AlertStatus(worker, alert)
        for (worker, _), report in coordinator.progress.reports.items()
        for alert in report.alerts
    ]
    limit_ms = coordinator.limits.alert_silent_ms
    for (worker, _), verdict in verdicts.items():
        over_ms = verdict.silent_ns / MS - limit_ms
        if over_ms > 0:
            cause = f"it was not heard for {verdict.silent_ns // (1000 * MS)} s"
            alert = Alert("WorkerSilent", "critical", cause, over_ms / 1000)
            found.append(AlertStatus(worker, alert))
    for worker, (reason, seconds) in coordinator.waiting.refused.items():
        alert = Alert("SchemaMismatch", "critical", reason, seconds)
        found.append(AlertStatus(worker, alert))
    return tuple(sorted(found, key=lambda one: (one.worker, one.alert.name)))


def _owners(now: Assignment) -> tuple[PartitionStatus, ...]:
    places = [(stage.name, number) for stage in now.stages for number in range(stage.partitions)]
    return tuple(
        PartitionStatus(stage, number, share.owner, share.since, share.standby)
        for (stage, number), share in zip(places, now.shares, strict=True)
    )


def _moves(coordinator: Coordinator, now: Assignment) -> tuple[MoveStatus, ...]:
    found = []
    for partition, share in enumerate(now.shares):
        target = share.target or ""
        if share.phase is not Phase.OWNED:
            source = (share.former if share.next is None else share.owner) or ""
            near = coordinator.progress.caught_up[partition, target]
            found.append(MoveStatus(partition, source, target, share.phase, near))
    return tuple(found)


def _waiting(coordinator: Coordinator, now: Assignment, now_ns: int) -> tuple[tuple[str, str], ...]:
    found = []
    for candidate in coordinator.waiting.candidates:
        wait_ms = coordinator.waiting.wait_ms(candidate.id, now_ns)
        why = "joins soon"
        if now.frozen is not None:
            why = f"the assignment is frozen: {now.frozen}"
        elif candidate.id in now.by_id:
            why = f"incarnation {now.by_id[candidate.id].incarnation} is still a member"
        elif wait_ms:
            why = f"was evicted several times in a row: {wait_ms // 1000} s to go"
        found.append((candidate.id, why))
    found += [(worker, reason) for worker, (reason, _) in coordinator.waiting.refused.items()]
    return tuple(found)


def _problems(
    coordinator: Coordinator, now: Assignment, verdicts: dict[Who, WorkerHealth]
) -> list[str]:
    found = []
    if coordinator.newest_number != now.version:
        found.append(f"version {coordinator.newest_number} of the assignment cannot be read")
    is_somebody_silent = any(v.standing is not HealthState.ACTIVE for v in verdicts.values())
    returned = coordinator.waiting.ids
    if is_somebody_silent and is_mass_silence(verdicts, coordinator.limits, returned):
        found.append(
            "many workers are silent at once: none is evicted before "
            f"{coordinator.limits.mass_silence_ms // 1000} s of it"
        )
    found += [
        f"{who[0]} is {verdict.standing.value}: {verdict.why}"
        for who, verdict in verdicts.items()
        if verdict.standing is not HealthState.ACTIVE
    ]
    found += [
        f"partition {partition} did not move to {process}: {why}"
        for (partition, process), why in sorted(coordinator.progress.failed.items())
    ]
    found += _failing(coordinator, now)
    found += _partition_problems(now, coordinator.limits.partitions)
    found += input_problems(coordinator.progress.inputs, now)
    found += [
        f"partition {pin.partition} is pinned to {pin.worker}, which is not a member"
        for pin in now.pins
        if pin.worker not in now.by_id
    ]
    return found


def _failing(coordinator: Coordinator, now: Assignment) -> list[str]:
    """Return the partitions whose owners fail again and again, and why; of many the first few."""
    found = [
        f"partition {failure.partition} has failed at {failure.process}, {FAILED}{failure.reason}"
        for report in coordinator.progress.reports.values()
        for failure in report.failed
        if 0 <= failure.partition < len(now.shares)
        and now.shares[failure.partition].owner == failure.process
        and (failure.partition, failure.process) not in coordinator.progress.failed
    ]
    more = len(found) - FAILING_SHOWN
    return found if more <= 0 else [*found[:FAILING_SHOWN], f"so have {more} more partitions"]


def _partition_problems(now: Assignment, asked: int) -> list[str]:
    """Return a problem if the configured number of partitions differs from the cluster's."""
    asking = stage_names.asked(now.stages)
    ours = asking.partitions
    stages = now.members[0].code.stages if now.members else ()
    is_asked = now.version > 0 and (asking.name, 0) in stages
    if not is_asked or ours == asked:
        return []
    return [f"{asked} partitions are asked for, but a cluster keeps those it has: {ours}"]
