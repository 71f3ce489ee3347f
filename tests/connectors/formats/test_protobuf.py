"""Messages of Protobuf as records: by the file that ``protoc`` makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc_tools
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from grpc_tools import protoc

from ripple.connectors.formats.formats import values_of
from ripple.connectors.formats.protobuf import NOT_ONE, OTHER_ONE, ProtobufValues
from ripple.connectors.record_shape import RecordShape
from ripple.core.errors import InputError
from ripple.model.schema.checks import Checks
from ripple.model.schema.types import Bool, Field, Float, Int, Int64, Record, Schema, String
from tests.connectors.formats.registries import no_registry

PROTO = """
syntax = "proto3";
package market;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
enum Side { UNKNOWN = 0; BUY = 1; SELL = 2; }
message Other { string text = 1; }
message Trade {
  message Leg { string symbol = 1; double price = 2; }
  string symbol = 1;
  optional double price = 2;
  sint64 size = 3;
  bool is_odd = 4;
  Side side = 5;
  optional string venue = 6;
  repeated string tags = 7;
  uint64 large = 8;
}
message Pair {
  Trade.Leg first = 1;
  Trade.Leg second = 2;
}
message Timed {
  google.protobuf.Timestamp at = 1;
  google.protobuf.Int64Value size = 2;
  google.protobuf.Duration took = 3;
}
"""
BUNDLED = Path(grpc_tools.__file__).parent / "_proto"
SHAPE = RecordShape(
    Schema(
        "Trade",
        (
            Field("symbol", String()),
            Field("price", Float()),
            Field("size", Int()),
            Field("is_odd", Bool()),
            Field("side", String()),
            Field("venue", String(), optional=True),
            Field("broker", String(), optional=True),
        ),
    ),
    {"size": Checks(gt=-100)},
)
ROW = {"symbol": "A", "price": 1.5, "size": -2, "is_odd": True, "side": "BUY", "venue": "X"}


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("proto")
    (folder / "trades.proto").write_text(PROTO)
    made = folder / "trades.desc"
    given = [
        f"-I{folder}",
        f"-I{BUNDLED}",
        "--include_imports",
        f"--descriptor_set_out={made}",
        "trades.proto",
    ]
    assert protoc.main(["protoc", *given]) == 0
    return made


def values(described: Path, shape: RecordShape = SHAPE, name: str = "market.Trade") -> Any:
    options = {"message": name, "descriptors": str(described)}
    return values_of("protobuf", shape, no_registry, options=options)


def message(described: Path, row: dict[str, Any], name: str = "market.Trade") -> bytes:
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(described.read_bytes()).file:
        pool.Add(file)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    data: bytes = made(**row).SerializeToString()
    return data


def told(found: Any) -> tuple[list[dict[str, Any]], dict[int, str]]:
    return found.records.to_pylist(), {bad.offset: bad.reason for bad in found.rejected}


def test_a_message_is_a_record_by_the_names_of_fields(described: Path) -> None:
    given = [message(described, ROW), message(described, {"price": 0.0, "tags": ["x"]})]
    found = values(described).batch(pa.array(given, pa.binary()))
    nothing = {"symbol": "", "price": 0.0, "size": 0, "is_odd": False, "side": "UNKNOWN"}
    expected = [{**ROW, "broker": None}, {**nothing, "venue": None, "broker": None}]
    assert told(found) == (expected, {})


def test_a_registrys_frame_is_read_and_another_message_in_it_refused(described: Path) -> None:
    data = message(described, ROW)

    def whole(head: bytes) -> bytes:
        return head if head.endswith(b"\x80") else head + data

    heads = {
        b"\0\0\0\0\7\2\2": None,  # one index, which is 1
        b"\0\0\0\0\7\0": OTHER_ONE,  # the first message of all
        b"\0\0\0\0\7\4\2\0": OTHER_ONE,  # a message within it
        b"\0\0\0\0\7\x80": NOT_ONE,  # and nothing behind it
        b"\0\0\0\0\7" + b"\xff" * 11: NOT_ONE,
    }
    found = values(described).batch(pa.array([*map(whole, heads)], pa.binary()))
    assert told(found) == (
        [{**ROW, "broker": None}],
        {at: why for at, why in enumerate(heads.values()) if why},
    )
    leg = RecordShape(Schema("Leg", (Field("symbol", String()), Field("price", Float()))), {})
    row = {"symbol": "A", "price": 2.5}
    framed = b"\0\0\0\0\7\4\2\0" + message(described, row, "market.Trade.Leg")
    within = values(described, leg, "market.Trade.Leg").batch(pa.array([framed], pa.binary()))
    assert told(within) == ([row], {})
    other = RecordShape(Schema("Other", (Field("text", String()),)), {})
    framed = b"\0\0\0\0\7\0" + message(described, {"text": "a"}, "market.Other")
    first = values(described, other, "market.Other").batch(pa.array([framed], pa.binary()))
    assert told(first) == ([{"text": "a"}], {})


def test_invalid_messages_are_rejected_and_the_others_read(
    described: Path,
) -> None:
    good = message(described, ROW)
    given = [good[:-1], b"\xff", good, message(described, {**ROW, "size": -100}), b"\x0a\x01\xff"]
    rows, refused = told(values(described).batch(pa.array(given, pa.binary())))
    assert rows == [{**ROW, "broker": None}]
    assert sorted(refused) == [0, 1, 3, 4]
    assert "price" in told(values(described).batch(pa.array([b""], pa.binary())))[1][0]


def test_a_number_that_no_column_has_is_refused(described: Path) -> None:
    shape = RecordShape(Schema("Trade", (Field("large", Int()),)), {})
    given = [message(described, {"large": n}) for n in (1 << 62, 1 << 63)]
    rows, refused = told(values(described, shape).batch(pa.array(given, pa.binary())))
    assert rows == [{"large": 1 << 62}]
    assert list(refused) == [1]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ((Field("size", String()),), "'size' of message market.Trade is sint64, .* text"),
        ((Field("tags", String()),), "'tags' of message market.Trade is repeated string"),
        ((Field("fee", Float()),), "market.Trade of .*desc has no field 'fee'"),
    ],
)
def test_a_message_that_does_not_fit_is_refused_before_anything_is_read(
    described: Path, fields: tuple[Field, ...], why: str
) -> None:
    with pytest.raises(InputError, match=why):
        values(described, RecordShape(Schema("Trade", fields), {}))


def test_descriptors_without_the_message_are_an_error(described: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no message 'Trade': it has market.Other, market.T"):
        values(described, name="Trade")
    with pytest.raises(InputError, match=r"cannot read .*nowhere: No such file"):
        values(tmp_path / "nowhere")
    (tmp_path / "text").write_text(PROTO)
    with pytest.raises(InputError, match="is not what protoc"):
        values(tmp_path / "text")
    with pytest.raises(InputError, match="needs message="):
        ProtobufValues(SHAPE, {"descriptors": str(described)})


def test_a_timestamp_is_its_nanoseconds_and_a_wrapper_what_it_wraps(described: Path) -> None:
    fields = Field("at", Int64(), optional=True), Field("size", Int(), optional=True)
    shape = RecordShape(Schema("Timed", fields))
    at = {"seconds": -2, "nanos": 999_999_999}
    made = [
        message(described, row, "market.Timed")
        for row in ({"at": at, "size": {"value": 7}}, {}, {"at": {"seconds": 1 << 60}})
    ]
    rows, refused = told(values(described, shape, "market.Timed").batch(pa.array(made)))
    assert rows == [{"at": -1_000_000_001, "size": 7}, {"at": None, "size": None}]
    assert refused == {2: "at does not fit in 64 bits"}
    for name, word in (("took", "google.protobuf.Duration"), ("at", "google.protobuf.Timestamp")):
        other = RecordShape(Schema("Timed", (Field(name, Float()),)))
        with pytest.raises(InputError, match=f"field '{name}' of message market.Timed is {word}"):
            values(described, other, "market.Timed")
    in_ms = RecordShape(Schema("Timed", fields), units=frozenset({"at"}))
    with pytest.raises(InputError, match=r"field 'at' of message market.Timed is a time already"):
        values(described, in_ms, "market.Timed")
    values(described, RecordShape(in_ms.schema, units=frozenset({"size"})), "market.Timed")


def test_messages_in_messages_are_read_by_path(described: Path) -> None:
    inner = Record((Field("symbol", String()), Field("price", Float())))
    shape = RecordShape(
        Schema("pair", (Field("first", inner), Field("second", inner, optional=True)))
    )
    legs = {"first": {"symbol": "A", "price": 1.5}}
    given = [
        message(described, legs, "market.Pair"),
        message(described, {**legs, "second": {"symbol": "B"}}, "market.Pair"),
        message(described, {}, "market.Pair"),
    ]
    found = values(described, shape, "market.Pair").batch(pa.array(given, pa.binary()))
    rows, refused = told(found)
    assert [list(row.values()) for row in rows] == [["A", 1.5, None, None], ["A", 1.5, "B", 0.0]]
    assert refused == {2: "first is empty"}
    with pytest.raises(InputError, match=r"field 'tags' .* is repeated string, .* is a record"):
        values(described, RecordShape(Schema("t", (Field("tags", inner),))))
    venue = Record((Field("venue", String()),))
    with pytest.raises(InputError, match=r"has no field 'first.venue'"):
        values(described, RecordShape(Schema("t", (Field("first", venue),))), "market.Pair")
