"""Messages of operators and replicas round trip; invalid fields are refused by name."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from coordinator.decisions.views import Observation, View
from coordinator.service.messages import (
    ViewAnswer,
    command_from_bytes,
    command_to_bytes,
    done_from_bytes,
    done_to_bytes,
    status_from_bytes,
    status_to_bytes,
    view_answer_from_bytes,
    view_answer_to_bytes,
    view_from_bytes,
    view_to_bytes,
)
from ripple.control.rpc import cluster_pb2 as pb
from ripple.control.rpc.mapping import RpcError
from tests.coordinator.messages import STATUS
from tests.examples import EXAMPLES, SAMPLED

COMMANDS = [
    Freeze("maintenance"),
    Unfreeze("done"),
    PinTo(0, "w1", "its cache"),
    Unpin(3, "no more"),
    Drain("w1", "its disk"),
    Undrain("w1", "a new disk"),
    Move(7, "w2", "it is hot"),
]
VIEW = View(
    "c1",
    12,
    (
        (("w1", 3), Observation(250_000_000, was_heard=True)),
        (("w2", 4), Observation(0, False, True)),
    ),
)


@pytest.mark.parametrize("command", COMMANDS)
def test_command_arrives(command: Command) -> None:
    assert command_from_bytes(command_to_bytes(command)) == command


def test_every_command_has_an_example() -> None:
    asked = {
        pb.CommandRequest.FromString(command_to_bytes(one)).WhichOneof("command")
        for one in COMMANDS
    }
    assert asked == {f.name for f in pb.CommandRequest.DESCRIPTOR.oneofs[0].fields}


def test_views_and_status_arrive() -> None:
    assert view_from_bytes(view_to_bytes(VIEW)) == VIEW
    answer = ViewAnswer(VIEW, 9)
    assert view_answer_from_bytes(view_answer_to_bytes(answer)) == answer
    assert status_from_bytes(status_to_bytes(STATUS)) == STATUS
    assert done_from_bytes(done_to_bytes(12)) == 12


BAD = [
    (pb.CommandRequest(reason="r"), "says nothing that this version knows"),
    (pb.CommandRequest(reason="x" * 201, freeze=pb.Freeze()), "reason has 201 characters"),
    (pb.CommandRequest(move=pb.Move(partition=8192, worker="w")), "partition is 8192"),
    (pb.CommandRequest(drain=pb.Drain(worker="a b")), "'a b' is no worker's id"),
]


@pytest.mark.parametrize(("message", "problem"), BAD)
def test_command_that_cannot_be_is_refused_by_name(
    message: pb.CommandRequest, problem: str
) -> None:
    with pytest.raises(RpcError, match=problem):
        command_from_bytes(message.SerializeToString())


def test_view_without_a_replica_is_refused() -> None:
    with pytest.raises(RpcError, match="no replica id"):
        view_from_bytes(b"")
    with pytest.raises(RpcError, match="ViewAnswer has no view"):
        view_answer_from_bytes(b"")
    nameless = pb.View(replica="c", sightings=[pb.Sighting()])
    with pytest.raises(RpcError, match="no worker's id"):
        view_from_bytes(nameless.SerializeToString())


WHOLE = [*map(command_to_bytes, COMMANDS), view_to_bytes(VIEW), status_to_bytes(STATUS)]


@settings(max_examples=36 * EXAMPLES // SAMPLED)
@given(st.binary(max_size=60), st.integers(0, 200), st.sampled_from(WHOLE))
def test_bad_bytes_are_an_error_or_a_message(noise: bytes, at: int, data: bytes) -> None:
    for damaged in (noise, data[:at], data[:at] + noise + data[at:]):
        for read in (command_from_bytes, view_from_bytes, status_from_bytes, done_from_bytes):
            with suppress(RpcError):
                assert read(damaged) is not None
