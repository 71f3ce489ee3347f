"""The status of a cluster as bytes."""

from __future__ import annotations

from coordinator.decisions.status import (
    AlertStatus,
    MemberStatus,
    MoveStatus,
    PartitionStatus,
    Status,
)
from coordinator.decisions.views import HealthState
from ripple.control.assignment import Phase
from ripple.control.rpc import cluster_pb2 as pb
from ripple.control.rpc.messages import (
    alert_from,
    alert_of,
    backpressure_from,
    backpressure_of,
    named_texts,
)
from ripple.control.rpc.reading import RpcError, parsed, texts


def status_to_bytes(status: Status, credential: str = "") -> bytes:
    """Return a status as bytes, with the credential for output subscriptions."""
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
        credential=credential,
    )
    return bytes(message.SerializeToString())


def status_from_bytes(data: bytes) -> Status:
    """Parse a status. Raises RpcError."""
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


def _standing(value: str) -> HealthState:
    try:
        return HealthState(value)
    except ValueError as error:
        raise RpcError(f"standing is {value!r:.40}") from error


def _phase(value: str) -> Phase:
    try:
        return Phase(value)
    except ValueError as error:
        raise RpcError(f"phase is {value!r:.40}") from error
