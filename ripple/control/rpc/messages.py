"""Messages as bytes. The reading side checks every value that could be invalid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.control.assignment import (
    Alert,
    Backpressure,
    Candidate,
    Code,
    Follower,
    Level,
    MoveFailed,
    Report,
)
from ripple.control.assignment.member import SLOTS_MAX
from ripple.control.assignment.version import PARTITIONS_MAX
from ripple.control.rpc import membership_messages as msg
from ripple.control.rpc import worker_pb2 as pb
from ripple.control.rpc.reading import (
    NUMBER_MAX,
    RpcError,
    choice,
    counts,
    needs,
    not_too_many,
    number,
    parsed,
    text,
    texts,
    worker,
)
from ripple.core.errors import RippleError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.control.rpc.membership_messages import CoordinatorMessage, Who, WorkerMessage

# Of reasons, for people.
REASON_LENGTH_MAX = 4096
SECONDS_MAX = 1e12
ALERTS_MAX = 64  # of one member, each by its rule


def worker_message_to_bytes(message: WorkerMessage) -> bytes:
    """Return a worker's message as bytes."""
    return bytes(_from_worker(message).SerializeToString())


def _from_worker(message: WorkerMessage) -> pb.FromWorker:
    match message:
        case msg.Register(candidate):
            return pb.FromWorker(register=_candidate(candidate))
        case msg.Heartbeat(who, report):
            return pb.FromWorker(heartbeat=pb.Heartbeat(who=member_of(who), report=_report(report)))
        case msg.Exited(who, slot, start):
            return pb.FromWorker(
                exited=pb.ProcessExited(who=member_of(who), slot=slot, start=start)
            )
        case msg.Draining(who, reason):
            return pb.FromWorker(draining=pb.Draining(who=member_of(who), reason=reason))
        case msg.Left(who):
            return pb.FromWorker(left=member_of(who))
        case msg.Checkpointed(who):
            return pb.FromWorker(checkpointed=member_of(who))
        case msg.Present():
            return pb.FromWorker(present=pb.Present())


def worker_message_from_bytes(data: bytes) -> WorkerMessage:
    """Parse a worker's message. Raises RpcError."""
    message = parsed(pb.FromWorker, data)
    match choice(message, "said"):
        case "register":
            return msg.Register(_candidate_from(message.register))
        case "heartbeat":
            beat = message.heartbeat
            needs(beat, "who", "report")
            return msg.Heartbeat(who_of(beat.who), _report_from(beat.report))
        case "exited":
            exited = message.exited
            needs(exited, "who")
            slot = number(exited.slot, "slot", SLOTS_MAX - 1)
            return msg.Exited(who_of(exited.who), slot, number(exited.start, "start"))
        case "draining":
            needs(message.draining, "who")
            reason = text(message.draining.reason, "reason", REASON_LENGTH_MAX)
            return msg.Draining(who_of(message.draining.who), reason)
        case "left":
            return msg.Left(who_of(message.left))
        case "checkpointed":
            return msg.Checkpointed(who_of(message.checkpointed))
        case _:
            return msg.Present()


def coordinator_message_to_bytes(message: CoordinatorMessage) -> bytes:
    """Return a coordinator's message as bytes."""
    return bytes(_to_worker(message).SerializeToString())


def _to_worker(message: CoordinatorMessage) -> pb.ToWorker:
    match message:
        case msg.Announced(version):
            return pb.ToWorker(announced=pb.Announced(version=version))
        case msg.Refused(nonce, reason):
            return pb.ToWorker(refused=pb.Refused(nonce=nonce, reason=reason[:REASON_LENGTH_MAX]))
        case msg.Postponed(nonce, wait_ms, reason):
            postponed = pb.Postponed(
                nonce=nonce, wait_ms=wait_ms, reason=reason[:REASON_LENGTH_MAX]
            )
            return pb.ToWorker(postponed=postponed)
        case msg.Evicted(who, reason):
            return pb.ToWorker(
                evicted=pb.Evicted(who=member_of(who), reason=reason[:REASON_LENGTH_MAX])
            )
        case msg.StoreCheckpoints(who):
            return pb.ToWorker(checkpoint=member_of(who))


def coordinator_message_from_bytes(data: bytes) -> CoordinatorMessage:
    """Parse a coordinator's message. Raises RpcError."""
    message = parsed(pb.ToWorker, data)
    match choice(message, "told"):
        case "announced":
            return msg.Announced(number(message.announced.version, "version"))
        case "refused":
            reason = text(message.refused.reason, "reason", REASON_LENGTH_MAX)
            return msg.Refused(text(message.refused.nonce, "nonce"), reason)
        case "postponed":
            postponed = message.postponed
            wait_ms = number(postponed.wait_ms, "wait_ms")
            reason = text(postponed.reason, "reason", REASON_LENGTH_MAX)
            return msg.Postponed(text(postponed.nonce, "nonce"), wait_ms, reason)
        case "evicted":
            needs(message.evicted, "who")
            reason = text(message.evicted.reason, "reason", REASON_LENGTH_MAX)
            return msg.Evicted(who_of(message.evicted.who), reason)
        case _:
            return msg.StoreCheckpoints(who_of(message.checkpoint))


def member_of(who: Who) -> pb.Member:
    """Return the identity of a member as a message."""
    return pb.Member(id=who[0], incarnation=who[1])


def who_of(member: pb.Member) -> Who:
    """Parse the identity of a member. Raises RpcError."""
    return worker(member.id, "member"), number(member.incarnation, "incarnation")


def _candidate(candidate: Candidate) -> pb.Candidate:
    code = candidate.code
    return pb.Candidate(
        id=candidate.id,
        nonce=candidate.nonce,
        addresses=named_texts(candidate.addresses),
        processes=candidate.processes,
        code=pb.Code(
            pipeline=code.pipeline,
            plan_hash=code.plan_hash,
            topology_hash=code.topology_hash,
            protocol=code.protocol,
            schemas=named_texts(code.schemas),
            stages=_named_counts(code.stages),
            ends=named_texts(code.ends),
        ),
        inputs=_named_counts(candidate.inputs),
        store=candidate.store,
    )


def _candidate_from(message: pb.Candidate) -> Candidate:
    needs(message, "code")
    code = message.code
    if not message.nonce:
        raise RpcError("a worker asks to join without a nonce")
    try:
        return Candidate(
            id=message.id,
            nonce=message.nonce,
            addresses=texts(message.addresses, "addresses"),
            processes=message.processes,
            code=Code(
                code.pipeline,
                code.plan_hash,
                code.topology_hash,
                number(code.protocol, "protocol"),
                texts(code.schemas, "schemas"),
                counts(code.stages, "stages"),
                texts(code.ends, "ends"),
            ),
            inputs=counts(message.inputs, "inputs"),
            store=text(message.store, "store"),
        )
    except RpcError:
        raise
    except RippleError as error:
        raise RpcError(f"a worker that asks to join is invalid: {error}") from error


def _report(report: Report) -> pb.Report:
    return pb.Report(
        load=min(max(report.load, 0.0), 1.0),
        starts=report.starts,
        live=[pb.Live(partition=one, since=since) for one, since in sorted(report.live)],
        followers=[
            pb.Follower(partition=one.partition, process=one.process, behind=one.behind)
            for one in report.followers
        ],
        failed=[
            pb.MoveFailed(
                partition=one.partition,
                process=one.process,
                reason=one.reason[:REASON_LENGTH_MAX],
            )
            for one in report.failed
        ],
        inputs=_named_counts(report.inputs),
        backpressure=backpressure_of(report.backpressure),
        alerts=[alert_of(one) for one in report.alerts],
    )


def _report_from(message: pb.Report) -> Report:
    # NaN is outside, too.
    if not 0 <= message.load <= 1:
        raise RpcError(f"load is {message.load}, not 0 to 1")
    not_too_many(message.starts, "starts", SLOTS_MAX)
    for name in ("live", "followers", "failed"):
        not_too_many(getattr(message, name), name, PARTITIONS_MAX)
    not_too_many(message.alerts, "alerts", ALERTS_MAX)
    return Report(
        load=message.load,
        starts=tuple(number(start, "starts") for start in message.starts),
        live=frozenset(
            (_partition(one.partition), number(one.since, "since")) for one in message.live
        ),
        followers=tuple(
            Follower(
                _partition(one.partition),
                text(one.process, "process"),
                # Capped: far behind is far, however far.
                min(one.behind, NUMBER_MAX),
            )
            for one in message.followers
        ),
        failed=tuple(
            MoveFailed(
                _partition(one.partition),
                text(one.process, "process"),
                text(one.reason, "reason", REASON_LENGTH_MAX),
            )
            for one in message.failed
        ),
        inputs=counts(message.inputs, "inputs"),
        backpressure=backpressure_from(message.backpressure),
        alerts=tuple(map(alert_from, message.alerts)),
    )


def alert_of(one: Alert) -> pb.Alert:
    """Return an alert as a message."""
    cause = one.cause[:REASON_LENGTH_MAX]
    return pb.Alert(name=one.name, severity=one.severity, cause=cause, seconds=one.seconds)


def alert_from(message: pb.Alert) -> Alert:
    """Parse an alert. Raises RpcError."""
    if not 0 <= message.seconds < SECONDS_MAX:
        raise RpcError(f"an alert fires for {message.seconds} s")
    name, severity = text(message.name, "name"), text(message.severity, "severity")
    return Alert(name, severity, text(message.cause, "cause", REASON_LENGTH_MAX), message.seconds)


def backpressure_of(one: Backpressure) -> pb.Backpressure:
    """Return backpressure as a message."""
    return pb.Backpressure(level=one.level, fill=one.fill, queue=one.queue)


def backpressure_from(message: pb.Backpressure) -> Backpressure:
    """Parse backpressure. Raises RpcError."""
    if not 0 <= message.fill <= 1:
        raise RpcError(f"a queue's fill is {message.fill}, not 0 to 1")
    level = Level(number(message.level, "level", max(Level)))
    return Backpressure(level, message.fill, text(message.queue, "queue"))


def _partition(value: int) -> int:
    return number(value, "partition", PARTITIONS_MAX - 1)


def named_texts(pairs: Iterable[tuple[str, str]]) -> list[pb.NamedText]:
    """Return named texts as messages."""
    return [pb.NamedText(name=name, text=value) for name, value in pairs]


def _named_counts(pairs: Iterable[tuple[str, int]]) -> list[pb.NamedCount]:
    return [pb.NamedCount(name=name, count=count) for name, count in pairs]
