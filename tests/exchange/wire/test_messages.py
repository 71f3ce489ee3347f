"""Messages: each comes back, says no more than it may, and hides ours from the original."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.exchange.wire.codec import INT, STRING, list_of, pair, record
from ripple.exchange.wire.edge_messages import (
    SECTIONS_MAX,
    Bundle,
    Follow,
    Section,
    Trace,
)
from ripple.exchange.wire.envelope import TYPES, Decoder, encode
from ripple.exchange.wire.errors import LocalProtocolError, ProtocolError, RemoteProtocolError
from ripple.exchange.wire.messages import (
    CAPABILITIES,
    CAPABILITIES_NAME,
    MESSAGES,
    Handshake,
    Heartbeat,
    Message,
    from_frame,
    to_frame,
)
from ripple.exchange.wire.records import SCHEMA
from ripple.model.schema.types import Field, List, Record, Schema, String, Variant
from tests.examples import EXAMPLES, SAMPLED
from tests.exchange.wire.samples import SAMPLES, VWAP


@pytest.mark.parametrize("message", SAMPLES, ids=lambda m: type(m).__name__)
def test_each_message_round_trip_through_its_frame(message: Message) -> None:
    decoder = Decoder()
    decoder.receive(encode(to_frame(message, sequence=9, fingerprint="0123456789abcdef")))
    frame = next(decoder)
    assert (frame.type, frame.sequence, frame.fingerprint) == (message.type, 9, "0123456789abcdef")
    assert from_frame(frame) == message


def test_every_type_has_a_class_and_a_sample() -> None:
    assert set(MESSAGES) == TYPES == {message.type for message in SAMPLES}
    assert [MESSAGES[n].__name__ for n in range(6)] == [
        "Handshake",
        "Delta",
        "CheckpointRequest",
        "CheckpointAck",
        "Heartbeat",
        "SchemaNegotiation",
    ]


@pytest.mark.parametrize("message", SAMPLES, ids=lambda m: type(m).__name__)
def test_a_truncated_or_damaged_payload_is_the_peers_fault(message: Message) -> None:
    payload = message.to_bytes()
    header = len(payload) - (len(message.body) if isinstance(message, Bundle) else 0)
    for length in range(header):
        with pytest.raises(RemoteProtocolError):
            type(message).from_bytes(payload[:length])
    for bit in range(len(payload) * 8):
        broken = bytearray(payload)
        broken[bit // 8] ^= 1 << bit % 8
        try:
            type(message).from_bytes(bytes(broken)).to_bytes()
        except RemoteProtocolError:
            continue


@given(st.sampled_from(sorted(TYPES)), st.binary(max_size=200))
@settings(max_examples=48 * EXAMPLES // SAMPLED)
def test_any_payload_raises_nothing_but_protocol_errors(type_: int, payload: bytes) -> None:
    try:
        MESSAGES[type_].from_bytes(payload)
    except ProtocolError:
        return


def test_trailing_bytes_of_a_message_are_rejected() -> None:
    with pytest.raises(RemoteProtocolError, match="1 bytes are left over"):
        Heartbeat.from_bytes(Heartbeat("w0", 1, 0.5).to_bytes() + b"\0")


# --- Capabilities --------------------------------------------------------------------------------


def test_capabilities_hide_in_a_handshake_that_the_original_reads() -> None:
    ours = Handshake.announce("w0", {"vwap": VWAP}, CAPABILITIES)
    # The original's record, built from its own definition alone.
    original = record(
        dict,
        {
            "source_worker_id": STRING,
            "output_schemas": list_of(pair(STRING, SCHEMA)),
            "protocol_version": INT,
        },
    ).loads(ours.to_bytes())
    assert original["source_worker_id"] == "w0"
    assert original["protocol_version"] == 1
    assert [name for name, _ in original["output_schemas"]] == ["vwap", CAPABILITIES_NAME]
    assert dict(original["output_schemas"])["vwap"] == VWAP
    read = Handshake.from_bytes(ours.to_bytes())
    assert read.capabilities == CAPABILITIES == {"changes", "edges", "lz4", "traces", "zstd"}
    assert read.outputs == {"vwap": VWAP}


def test_the_originals_handshake_has_no_capabilities() -> None:
    plain = Handshake("w0", (("vwap", VWAP),))
    assert plain.capabilities == frozenset()
    assert Handshake.announce("w0", {"vwap": VWAP}).to_bytes() == plain.to_bytes()


def test_the_originals_handshake_with_a_schema_without_fields_is_read_and_written() -> None:
    # w0 offers "e" with {name="e"; version=1; fields=[]; doc=None}, in protocol 1.
    data = bytes.fromhex("027730010165016501000001")
    assert Handshake.from_bytes(data) == Handshake("w0", (("e", Schema("e", ())),))
    assert Handshake.from_bytes(data).to_bytes() == data


def test_the_originals_types_without_members_are_read_and_written() -> None:
    # Record of [] and Variant of [], required, without docs.
    data = bytes.fromhex("0165010201610800000001620900000000")
    empty = Schema("e", (Field("a", Record(())), Field("b", Variant(()))))
    assert SCHEMA.loads(data) == empty
    assert SCHEMA.dumps(empty) == data


def test_an_output_declared_twice_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="declared twice"):
        Handshake("w0", (("vwap", VWAP), ("vwap", VWAP)))
    twice = record(
        dict,
        {"w": STRING, "outputs": list_of(pair(STRING, SCHEMA)), "v": INT},
    ).dumps({"w": "w0", "outputs": [("a", VWAP), ("a", VWAP)], "v": 1})
    with pytest.raises(RemoteProtocolError, match="declared twice"):
        Handshake.from_bytes(twice)


def test_a_schema_that_cannot_be_is_the_peers_fault() -> None:
    data = bytearray(SCHEMA.dumps(VWAP))
    place = 1 + len(b"vwap")
    assert data[place] == 2
    data[place] = 0
    with pytest.raises(RemoteProtocolError, match="version"):
        SCHEMA.loads(bytes(data))


def test_a_schema_nested_without_end_is_refused_before_it_is_built() -> None:
    deep = b"\1s\1\1" + b"\1x" + b"\7" * 1_000_000
    with pytest.raises(RemoteProtocolError, match="nested deeper"):
        SCHEMA.loads(deep)
    kind = String()
    for _ in range(60):
        kind = List(kind)
    with pytest.raises(ProtocolError):
        SCHEMA.loads(b"\1s\1\1\1x" + b"\7" * 60 + b"\0\0\0\0")


# --- Rules of ours -------------------------------------------------------------------------------


def test_the_body_of_a_bundle_is_not_copied_when_read() -> None:
    payload = Bundle("vwap/1", (), bytes(1_000_000)).to_bytes()
    body = Bundle.from_bytes(payload).body
    assert isinstance(body, memoryview)
    assert body.obj is payload


def test_invalid_message_is_neither_sent_nor_accepted() -> None:
    with pytest.raises(LocalProtocolError, match="a credit of 0 rows"):
        Follow("vwap/1", 3, 0, 1, None, None, 0)
    with pytest.raises(LocalProtocolError):
        Trace("vwap/1", 3, 0, 2, ("traceparent",))
    payload = bytearray(Follow("vwap/1", 3, 0, 1, None, None, 1).to_bytes())
    assert payload[-2] == 1
    payload[-2] = 0
    with pytest.raises(RemoteProtocolError, match="a credit of 0 rows"):
        Follow.from_bytes(bytes(payload))


def test_a_bundle_of_too_many_sections_or_a_negative_count_is_refused() -> None:
    section = Section(0, 0, 1, 0, None, (), 0, 0)
    with pytest.raises(RemoteProtocolError, match="SECTIONS_MAX"):
        Bundle.from_bytes(Bundle("e/1", (section,) * (SECTIONS_MAX + 1), b"").to_bytes())
    for wrong in ({"rows": -1}, {"sender": -1}, {"turn": -1}, {"cut": (("b", 1), ("a", 1))}):
        with pytest.raises(LocalProtocolError):
            replace(section, **wrong)
