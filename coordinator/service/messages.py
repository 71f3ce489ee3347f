"""Messages of operators and other replicas to a coordinator, as bytes."""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.decisions.commands import (
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
from coordinator.decisions.views import Observation, View
from ripple.control.assignment.version import PARTITIONS_MAX
from ripple.control.rpc import cluster_pb2 as pb
from ripple.control.rpc.messages import (
    member_of,
    who_of,
)
from ripple.control.rpc.reading import (
    RpcError,
    choice,
    needs,
    not_too_many,
    number,
    parsed,
    text,
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
        raise RpcError("a view has no replica id")
    not_too_many(message.sightings, "a view", MEMBERS_MAX)
    return View(
        text(message.replica, "replica"),
        number(message.number, "number"),
        tuple(
            (
                who_of(one.who),
                Observation(one.silent_ns, one.was_heard, one.has_ended),
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
    """Return the version as of which a command is done, as bytes."""
    return bytes(pb.CommandAnswer(version=version).SerializeToString())


def done_from_bytes(data: bytes) -> int:
    """Parse the version as of which a command is done. Raises RpcError."""
    return number(parsed(pb.CommandAnswer, data).version, "version")
