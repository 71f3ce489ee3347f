"""Messages of workers and coordinators round trip; invalid fields are refused by name."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from ripple.control.rpc import membership_messages as msg
from ripple.control.rpc import methods
from ripple.control.rpc import worker_pb2 as pb
from ripple.control.rpc.coordinator_pb2 import DESCRIPTOR
from ripple.control.rpc.mapping import RpcError
from ripple.control.rpc.messages import (
    coordinator_message_from_bytes,
    coordinator_message_to_bytes,
    worker_message_from_bytes,
    worker_message_to_bytes,
)
from tests.control.assignment.examples import candidate
from tests.examples import EXAMPLES, SAMPLED

WHO = ("w1", 7)
REPORT = Report(
    0.25,
    (0, 3),
    frozenset({(1, 5), (0, 5)}),
    (Follower(2, "w1/0", 9),),
    (MoveFailed(3, "w1/1", "its digest differs"),),
    (("trades", 128),),
    Backpressure(Level.SLOW, 0.83, "outboxes"),
    (Alert("BackpressureHigh", "critical", "outboxes is 83% full", 4.5),),
)
SAID = [
    msg.Register(candidate("w1")),
    msg.Register(
        Candidate(
            id="w",
            nonce="n",
            addresses=(("deltas/0", "[::1]:9101"), ("health", "h:1")),
            processes=3,
            code=Code("p", "a", "b", 1, (("s", "f"),), (("main", 0), ("2", 8)), (("source", "x"),)),
            inputs=(("trades", 256),),
            store="ripple 1f",
        )
    ),
    msg.Heartbeat(WHO, Report()),
    msg.Heartbeat(WHO, REPORT),
    msg.Exited(WHO, 2, 5),
    msg.Draining(WHO, "it is to stop"),
    msg.Left(WHO),
    msg.Checkpointed(WHO),
    msg.Present(),
]
TOLD = [
    msg.Announced(0),
    msg.Announced(12),
    msg.Refused("n", "it does not fit"),
    msg.Postponed("n", 20_000, "it was evicted several times in a row"),
    msg.Evicted(WHO, "version 9 is without it"),
    msg.StoreCheckpoints(WHO),
]


@pytest.mark.parametrize("said", SAID)
def test_worker_messages_round_trip(said: msg.WorkerMessage) -> None:
    assert worker_message_from_bytes(worker_message_to_bytes(said)) == said


@pytest.mark.parametrize("told", TOLD)
def test_coordinator_messages_round_trip(told: msg.CoordinatorMessage) -> None:
    assert coordinator_message_from_bytes(coordinator_message_to_bytes(told)) == told


def test_every_word_has_an_example() -> None:
    assert {f.name for f in pb.FromWorker.DESCRIPTOR.fields} == {
        pb.FromWorker.FromString(worker_message_to_bytes(said)).WhichOneof("said") for said in SAID
    }
    assert {f.name for f in pb.ToWorker.DESCRIPTOR.fields} == {
        pb.ToWorker.FromString(coordinator_message_to_bytes(told)).WhichOneof("told")
        for told in TOLD
    }


def test_methods_are_those_of_the_service() -> None:
    service = DESCRIPTOR.services_by_name["Coordinator"]
    assert service.full_name == methods.SERVICE
    named = {methods.CONVERSE, methods.COMMAND, methods.STATUS, methods.VIEW, methods.PIPELINES}
    assert named == {f"{service.full_name}/{method.name}" for method in service.methods}


def beat(**report: Any) -> pb.FromWorker:
    who = pb.Member(id="w1", incarnation=1)
    return pb.FromWorker(heartbeat=pb.Heartbeat(who=who, report=pb.Report(**report)))


def asking(**candidate: Any) -> pb.FromWorker:
    return pb.FromWorker(register=pb.Candidate(**candidate))


def test_far_behind_is_far_however_far() -> None:
    said = beat(followers=[pb.Follower(process="w/0", behind=2**64 - 1)]).SerializeToString()
    heard = worker_message_from_bytes(said)
    assert isinstance(heard, msg.Heartbeat)
    assert heard.report.followers == (Follower(0, "w/0", 2**53),)


BAD = [
    (pb.FromWorker(), "says nothing"),
    (beat(load=1.5), "load is 1.5"),
    (beat(load=float("nan")), "load is nan"),
    (beat(backpressure=pb.Backpressure(level=4)), "level is 4"),
    (beat(backpressure=pb.Backpressure(fill=1.5)), "fill is 1.5"),
    (beat(backpressure=pb.Backpressure(queue="x" * 257)), "queue has 257"),
    (beat(live=[pb.Live(partition=8192)]), "partition is 8192"),
    (beat(live=[pb.Live(since=1 << 60)]), "since is"),
    (beat(starts=[0] * 1025), "starts has 1025"),
    (beat(inputs=[pb.NamedCount(name="i", count=1)] * 1025), "inputs has 1025"),
    (beat(followers=[pb.Follower(process="x" * 257)]), "process has 257"),
    (beat(failed=[pb.MoveFailed(reason="x" * 4097)]), "reason has 4097"),
    (pb.FromWorker(heartbeat=pb.Heartbeat(report=pb.Report())), "Heartbeat has no who"),
    (beat(alerts=[pb.Alert(seconds=float("nan"))]), "seconds is nan"),
    (beat(alerts=[pb.Alert()] * 65), "alerts"),
    (
        pb.FromWorker(heartbeat=pb.Heartbeat(who=pb.Member(id="w"))),
        "Heartbeat has no report",
    ),
    (pb.FromWorker(left=pb.Member(id="a worker")), "'a worker' is no worker's id"),
    (pb.FromWorker(left=pb.Member(id="w", incarnation=1 << 60)), "incarnation is"),
    (pb.FromWorker(exited=pb.ProcessExited(slot=1)), "ProcessExited has no who"),
    (
        pb.FromWorker(exited=pb.ProcessExited(who=pb.Member(id="w"), slot=1024)),
        "slot is 1024",
    ),
    (asking(id="w", nonce="n"), "Candidate has no code"),
    (asking(id="w", code=pb.Code()), "without a nonce"),
    (asking(id="", nonce="n", code=pb.Code(), processes=1), "no worker's id"),
    (asking(id="w", nonce="n", code=pb.Code()), "0 processes"),
    (asking(id="w", nonce="x" * 300, code=pb.Code(), processes=1), "says too much"),
]


@pytest.mark.parametrize(("message", "problem"), BAD)
def test_invalid_field_is_refused_by_name(message: Any, problem: str) -> None:
    with pytest.raises(RpcError, match=problem):
        worker_message_from_bytes(message.SerializeToString())


def test_told_of_nothing_is_refused() -> None:
    with pytest.raises(RpcError, match="says nothing"):
        coordinator_message_from_bytes(b"")
    with pytest.raises(RpcError, match="no worker's id"):
        coordinator_message_from_bytes(
            pb.ToWorker(evicted=pb.Evicted(who=pb.Member())).SerializeToString()
        )


@settings(max_examples=36 * EXAMPLES // SAMPLED)
@given(st.binary(max_size=80), st.integers(0, 80), st.sampled_from(SAID))
def test_bad_bytes_are_an_error_or_words(noise: bytes, at: int, said: msg.WorkerMessage) -> None:
    data = worker_message_to_bytes(said)
    for damaged in (noise, data[:at], data[:at] + noise + data[at:]):
        for read in (worker_message_from_bytes, coordinator_message_from_bytes):
            with suppress(RpcError):
                assert read(damaged)


def test_load_that_is_a_little_too_much_is_full() -> None:
    read = worker_message_from_bytes(worker_message_to_bytes(msg.Heartbeat(WHO, Report(1.0000001))))
    assert read == msg.Heartbeat(WHO, Report(1.0))
