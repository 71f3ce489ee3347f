"""What people and other replicas ask of a coordinator, as bytes, and back."""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.commands import (
    REASON_LENGTH_MAX,
    Command,
    Drain,
    Freeze,
    Move,
    PinTo,
    Undrain,
    Unfreeze,
    Unpin,
)
from coordinator.status import AlertStatus, MemberStatus, MoveStatus, PartitionStatus, Status
from coordinator.views import Sighting, Standing, View
from ripple.assignment import Phase
from ripple.assignment.version import PARTITIONS_MAX
from ripple.rpc import cluster_pb2 as pb
from ripple.rpc.messages import (
    alert_from,
    alert_of,
    backpressure_from,
    backpressure_of,
    member_of,
    named_texts,
    who_of,
)
from ripple.rpc.reading import (
    RpcError,
    choice,
    needs,
    not_too_many,
    number,
    parsed,
    text,
    texts,
    worker,
)

MEMBERS_MAX = 16_384


@dataclass(frozen=True, slots=True)
class ViewAnswer:
    """A replica's view, and the newest version that it knows."""

    view: View
    version: int


def view_to_bytes(view: View) -> bytes:
    """Return a view as bytes."""
    return bytes(_view(view).SerializeToString())


def view_from_bytes(data: bytes) -> View:
    """Return a view. Raises RpcError."""
    return _view_from(parsed(pb.View, data))


def view_answer_to_bytes(answer: ViewAnswer) -> bytes:
    """Return the answer to another replica as bytes."""
    message = pb.ViewAnswer(view=_view(answer.view), version=answer.version)
    return bytes(message.SerializeToString())


def view_answer_from_bytes(data: bytes) -> ViewAnswer:
    """Return another replica's answer. Raises RpcError."""
    message = parsed(pb.ViewAnswer, data)
    needs(message, "view")
    return ViewAnswer(_view_from(message.view), number(message.version, "version"))


def _view(view: View) -> pb.View:
    return pb.View(
        replica=view.replica,
        number=view.number,
        sightings=[
            pb.Sighting(
                who=member_of(who),
                silent_ns=max(0, one.silent_ns),
                was_heard=one.was_heard,
                has_ended=one.has_ended,
            )
            for who, one in view.sightings
        ],
    )


def _view_from(message: pb.View) -> View:
    if not message.replica:
        raise RpcError("a view is nobody's")
    not_too_many(message.sightings, "a view", MEMBERS_MAX)
    return View(
        text(message.replica, "replica"),
        number(message.number, "number"),
        tuple(
            (
                who_of(one.who),
                Sighting(one.silent_ns, one.was_heard, one.has_ended),
            )
            for one in message.sightings
        ),
    )


def command_to_bytes(command: Command) -> bytes:
    """Return a command as bytes."""
    message = pb.CommandRequest(reason=command.reason)
    match command:
        case Freeze():
            message.freeze.SetInParent()
        case Unfreeze():
            message.unfreeze.SetInParent()
        case PinTo(partition, to):
            message.pin.CopyFrom(pb.Pin(partition=partition, worker=to))
        case Unpin(partition):
            message.unpin.CopyFrom(pb.Unpin(partition=partition))
        case Drain(of):
            message.drain.CopyFrom(pb.Drain(worker=of))
        case Undrain(of):
            message.undrain.CopyFrom(pb.Undrain(worker=of))
        case Move(partition, to):
            message.move.CopyFrom(pb.Move(partition=partition, worker=to))
    return bytes(message.SerializeToString())


def command_from_bytes(data: bytes) -> Command:
    """Return a command. Raises RpcError."""
    message = parsed(pb.CommandRequest, data)
    kind = choice(message, "command")
    reason = text(message.reason, "reason", REASON_LENGTH_MAX)
    match kind:
        case "freeze":
            return Freeze(reason)
        case "unfreeze":
            return Unfreeze(reason)
        case "pin":
            return PinTo(_partition(message.pin.partition), _named(message.pin.worker), reason)
        case "unpin":
            return Unpin(_partition(message.unpin.partition), reason)
        case "drain":
            return Drain(_named(message.drain.worker), reason)
        case "undrain":
            return Undrain(_named(message.undrain.worker), reason)
        case _:
            return Move(_partition(message.move.partition), _named(message.move.worker), reason)


def _partition(value: int) -> int:
    return number(value, "partition", PARTITIONS_MAX - 1)


def _named(value: str) -> str:
    return worker(value, "worker")


def done_to_bytes(version: int) -> bytes:
    """Return as bytes as of which version a command is done."""
    return bytes(pb.CommandAnswer(version=version).SerializeToString())


def done_from_bytes(data: bytes) -> int:
    """Return as of which version a command is done. Raises RpcError."""
    return number(parsed(pb.CommandAnswer, data).version, "version")


def status_to_bytes(status: Status) -> bytes:
    """Return what a coordinator knows as bytes."""
    message = pb.StatusAnswer(
        replica=status.replica,
        version=status.version,
        cause=status.cause,
        frozen=status.frozen,
        partitions=status.partitions,
        unowned=status.unowned,
        members=[
            pb.MemberStatus(
                id=one.id,
                incarnation=one.incarnation,
                standing=one.standing.value,
                silent_ms=max(0, one.silent_ms),
                load=one.load,
                partitions=one.partitions,
                is_leaving=one.is_leaving,
                addresses=named_texts(one.addresses),
                backpressure=None
                if one.backpressure is None
                else backpressure_of(one.backpressure),
            )
            for one in status.members
        ],
        moves=[
            pb.MoveStatus(
                partition=one.partition,
                source=one.source,
                target=one.target,
                phase=one.phase.value,
                times_near=one.times_near,
            )
            for one in status.moves
        ],
        pins=[
            pb.PinStatus(partition=partition, worker=to, reason=reason)
            for partition, to, reason in status.pins
        ],
        replicas=status.replicas,
        waiting=named_texts(status.waiting),
        problems=status.problems,
        owners=[
            pb.PartitionStatus(
                stage=one.stage,
                number=one.number,
                owner=one.owner,
                since=one.since,
                standby=one.standby,
            )
            for one in status.owners
        ],
        alerts=[
            pb.AlertStatus(worker=one.worker, alert=alert_of(one.alert)) for one in status.alerts
        ],
    )
    return bytes(message.SerializeToString())


def status_from_bytes(data: bytes) -> Status:
    """Return what a coordinator knows. Raises RpcError."""
    message = parsed(pb.StatusAnswer, data)
    return Status(
        replica=message.replica,
        version=message.version,
        cause=message.cause,
        frozen=message.frozen if message.HasField("frozen") else None,
        partitions=message.partitions,
        unowned=message.unowned,
        members=tuple(_member_from(one) for one in message.members),
        moves=tuple(
            MoveStatus(one.partition, one.source, one.target, _phase(one.phase), one.times_near)
            for one in message.moves
        ),
        pins=tuple((one.partition, one.worker, one.reason) for one in message.pins),
        replicas=tuple(message.replicas),
        waiting=tuple((one.name, one.text) for one in message.waiting),
        problems=tuple(message.problems),
        owners=tuple(
            PartitionStatus(
                one.stage,
                one.number,
                one.owner if one.HasField("owner") else None,
                one.since,
                one.standby if one.HasField("standby") else None,
            )
            for one in message.owners
        ),
        alerts=tuple(AlertStatus(one.worker, alert_from(one.alert)) for one in message.alerts),
    )


def _member_from(message: pb.MemberStatus) -> MemberStatus:
    return MemberStatus(
        id=message.id,
        incarnation=message.incarnation,
        standing=_standing(message.standing),
        silent_ms=message.silent_ms,
        load=message.load if message.HasField("load") else None,
        partitions=message.partitions,
        is_leaving=message.is_leaving,
        addresses=texts(message.addresses, "addresses"),
        backpressure=backpressure_from(message.backpressure)
        if message.HasField("backpressure")
        else None,
    )


def _standing(value: str) -> Standing:
    try:
        return Standing(value)
    except ValueError as error:
        raise RpcError(f"standing is {value!r:.40}") from error


def _phase(value: str) -> Phase:
    try:
        return Phase(value)
    except ValueError as error:
        raise RpcError(f"phase is {value!r:.40}") from error
