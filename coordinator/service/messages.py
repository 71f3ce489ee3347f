"""Messages of operators and other replicas to a coordinator, and a cluster's status, as bytes."""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.decisions.commands import (
    Command,
    Drain,
    Freeze,
    Move,
    PinTo,
    Undrain,
    Unfreeze,
    Unpin,
)
from coordinator.decisions.status import Status
from coordinator.decisions.views import View
from ripple.control.assignment.pipelines import Pipelines
from ripple.control.rpc import cluster_pb2 as pb
from ripple.control.rpc.mapping import (
    choice,
    fields_from,
    fields_to,
    from_bytes,
    parsed,
    to_bytes,
    to_message,
)

_COMMANDS: dict[str, type[Command]] = {
    "freeze": Freeze,
    "unfreeze": Unfreeze,
    "pin": PinTo,
    "unpin": Unpin,
    "drain": Drain,
    "undrain": Undrain,
    "move": Move,
}
_NAMES = {kind: name for name, kind in _COMMANDS.items()}


@dataclass(frozen=True, slots=True)
class ViewAnswer:
    """A replica's view, and the newest version that it knows."""

    view: View
    version: int


def view_to_bytes(view: View) -> bytes:
    """Return a view as bytes."""
    return to_bytes(view, pb.View)


def view_from_bytes(data: bytes) -> View:
    """Return a view. Raises RpcError."""
    return from_bytes(View, pb.View, data)


def view_answer_to_bytes(answer: ViewAnswer) -> bytes:
    """Return the answer to another replica as bytes."""
    return to_bytes(answer, pb.ViewAnswer)


def view_answer_from_bytes(data: bytes) -> ViewAnswer:
    """Return another replica's answer. Raises RpcError."""
    return from_bytes(ViewAnswer, pb.ViewAnswer, data)


def command_to_bytes(command: Command) -> bytes:
    """Return a command as bytes."""
    name, message = _NAMES[type(command)], fields_to(command, pb.CommandRequest)
    part = getattr(message, name)
    part.CopyFrom(fields_to(command, type(part)))
    part.SetInParent()  # of those without fields, too
    return bytes(message.SerializeToString())


def command_from_bytes(data: bytes) -> Command:
    """Return a command. Raises RpcError."""
    message = parsed(pb.CommandRequest, data)
    name = choice(message, "command")
    kind = _COMMANDS[name]
    return kind(**fields_from(kind, message), **fields_from(kind, getattr(message, name)))


def done_to_bytes(version: int) -> bytes:
    """Return the version as of which a command is done, as bytes."""
    return bytes(pb.CommandAnswer(version=version).SerializeToString())


def done_from_bytes(data: bytes) -> int:
    """Parse the version as of which a command is done. Raises RpcError."""
    return from_bytes(_Done, pb.CommandAnswer, data).version


@dataclass(frozen=True, slots=True)
class _Done:
    version: int


def status_to_bytes(status: Status, credential: str = "") -> bytes:
    """Return a status as bytes, with the credential for output subscriptions."""
    message = to_message(status, pb.StatusAnswer)
    message.credential = credential
    return bytes(message.SerializeToString())


def status_from_bytes(data: bytes) -> Status:
    """Parse a status. Raises RpcError."""
    return from_bytes(Status, pb.StatusAnswer, data)


def pipelines_to_bytes(pipelines: Pipelines) -> bytes:
    """Return the pipelines of a cluster as bytes."""
    return to_bytes(pipelines, pb.PipelinesAnswer)


def pipelines_from_bytes(data: bytes) -> Pipelines:
    """Parse the pipelines of a cluster. Raises RpcError."""
    return from_bytes(Pipelines, pb.PipelinesAnswer, data)
