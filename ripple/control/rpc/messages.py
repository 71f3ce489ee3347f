"""Messages between workers and coordinators as bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.control.rpc import membership_messages as msg
from ripple.control.rpc import worker_pb2 as pb
from ripple.control.rpc.mapping import Choice

if TYPE_CHECKING:
    from ripple.control.rpc.membership_messages import CoordinatorMessage, WorkerMessage

_OF_WORKER = Choice(
    pb.FromWorker,
    {
        "register": msg.Register,
        "heartbeat": msg.Heartbeat,
        "exited": msg.Exited,
        "draining": msg.Draining,
        "left": msg.Left,
        "checkpointed": msg.Checkpointed,
        "present": msg.Present,
    },
)
_OF_COORDINATOR = Choice(
    pb.ToWorker,
    {
        "announced": msg.Announced,
        "refused": msg.Refused,
        "postponed": msg.Postponed,
        "evicted": msg.Evicted,
        "checkpoint": msg.StoreCheckpoints,
    },
)


def worker_message_to_bytes(message: WorkerMessage) -> bytes:
    """Return a worker's message as bytes."""
    return _OF_WORKER.to_bytes(message)


def worker_message_from_bytes(data: bytes) -> WorkerMessage:
    """Parse a worker's message. Raises RpcError."""
    message: WorkerMessage = _OF_WORKER.from_bytes(data)
    return message


def coordinator_message_to_bytes(message: CoordinatorMessage) -> bytes:
    """Return a coordinator's message as bytes."""
    return _OF_COORDINATOR.to_bytes(message)


def coordinator_message_from_bytes(data: bytes) -> CoordinatorMessage:
    """Parse a coordinator's message. Raises RpcError."""
    message: CoordinatorMessage = _OF_COORDINATOR.from_bytes(data)
    return message
