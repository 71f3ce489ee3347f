"""What people see of the wire: the shapes of ``debug tap``, and a command for captures."""

from __future__ import annotations

import io
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from ripple.delta.layout import CLEARED
from ripple.delta.rows import FieldRemove, FieldSet, Patch, Remove, Set
from ripple.encoding import arrow
from ripple.ops import OP, OP_FINAL, OP_PATCH, OP_REMOVE, OP_SET
from ripple.schema.types import Field, Float, Int, Schema, String
from ripple.wire.bin_prot import STRING
from ripple.wire.deltas import DeltaCodec
from ripple.wire.envelope import DEFAULT_LIMITS, Frame, encode
from ripple.wire.errors import LocalProtocolError, RemoteProtocolError
from ripple.wire.messages import (
    Changes,
    Delta,
    Goodbye,
    Handshake,
    Heartbeat,
    Message,
    Reason,
    cut_of,
    to_frame,
)
from ripple.wire.view import View, spaced
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

VWAP = Schema(
    "vwap",
    (
        Field("symbol", String()),
        Field("vwap", Float()),
        Field("total_volume", Int()),
        Field("trade_count", Int()),
        Field("venue", String(), optional=True),
    ),
)
CODEC = DeltaCodec(VWAP)
GOOG = {"symbol": "GOOG", "vwap": 2801.5, "total_volume": 500, "trade_count": 3}


def _delta(key: str, delta, sequence: int) -> Delta:
    return Delta("vwap", STRING.dumps(key), CODEC.dumps(delta), sequence)


TALK: list[Message] = [
    Handshake("w0", (("vwap", VWAP),)),
    _delta("AAPL", Patch((FieldSet("vwap", 150.25),)), 1),
    _delta("GOOG", Set(GOOG), 2),
    _delta("AAPL", Patch((FieldSet("vwap", 150.5), FieldRemove("venue"))), 3),
    _delta("two words", Remove(), 4),
    Heartbeat("w0", 1709000000000000000, 0.25),
    Changes(
        "vwap",
        0,
        7,
        None,
        cut_of({"trades/0": 9}),
        None,
        arrow.dumps(
            pa.record_batch(
                {
                    "symbol": ["AAPL", "GOOG", "MSFT", "IBM"],
                    OP: pa.array([OP_SET, OP_PATCH, OP_REMOVE, OP_FINAL], pa.int8()),
                    "vwap": [150.25, None, None, 2.5],
                    "venue": ["XNAS", None, None, None],
                    CLEARED + "venue": [False, True, False, False],
                }
            )
        ),
    ),
    Goodbye(Reason.SHUTDOWN, "see you"),
]
FRAMES = [to_frame(message, sequence=n) for n, message in enumerate(TALK)]
CAPTURE = b"".join(map(encode, FRAMES))
LINES = """\
seq=1 key=AAPL delta=(Patch ((Field_set (field_name vwap) (value 150.25))))
seq=2 key=GOOG delta=(Set ((symbol GOOG)(vwap 2801.5)(total_volume 500)(trade_count 3)))
seq=3 key=AAPL delta=(Patch ((Field_set (field_name vwap) (value 150.5))\
(Field_remove (field_name venue))))
seq=4 key="two words" delta=Remove
seq=5 Heartbeat ((worker_id w0)(timestamp_ns 1709000000000000000)(load 0.25))
seq=6 Changes ((output vwap)(partition 0)(epoch 7)(from_cut ())(to_cut ((trades/0 9)))\
(watermark_ns ())(traceparent ()))
  key=AAPL delta=(Set ((symbol AAPL)(vwap 150.25)(venue XNAS)))
  key=GOOG delta=(Patch ((Field_remove (field_name venue))))
  key=MSFT delta=Remove
  key=IBM delta=(Final ((symbol IBM)(vwap 2.5)))
seq=7 Goodbye ((reason SHUTDOWN)(detail "see you"))
""".splitlines()


def test_a_conversation_is_shown_in_the_books_shapes() -> None:
    view = View()
    shown = [line for frame in FRAMES for line in view.lines(frame)]
    assert shown[0].startswith("seq=0 Handshake ((source_worker_id w0)(output_schemas ((vwap ")
    assert shown[1:] == LINES


def test_a_delta_of_an_unknown_output_stays_hexadecimal() -> None:
    (line,) = View().lines(to_frame(Delta("other", b"\xff", b"\2", 1)))
    assert line == "seq=1 key=0xff delta=0x02"


def _changes(batch: pa.RecordBatch) -> Frame:
    return to_frame(Changes("vwap", 0, 7, None, (), None, arrow.dumps(batch)))


def test_a_key_of_several_fields_is_shown_as_a_list() -> None:
    ops = pa.array([OP_REMOVE], pa.int8())
    batch = pa.record_batch({"symbol": ["A B"], "window_start_ns": [60], OP: ops})
    assert list(View().lines(_changes(batch)))[1:] == ['  key=("A B" 60) delta=Remove']


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"key": ["A"], "at": pa.array([0], pa.timestamp("ns"))}, "no column 'op' among key, at"),
        ({"at": [0.5], OP: pa.array([0], pa.int8())}, "key field 'at' is double"),
        ({"key": ["A"], OP: pa.array([7], pa.int8()), "at": ["x"]}, "there is no operation 7"),
        ({"key": ["A"], OP: pa.array([0], pa.int8()), "at": [b"x"]}, "has no S-expression"),
    ],
)
def test_columns_that_are_no_deltas_are_shown_as_columns_and_say_why(columns, why) -> None:
    _, reason, row = View().lines(_changes(pa.record_batch(columns)))
    assert reason.startswith("  not deltas: ")
    assert why in reason
    assert row.startswith("  ((")


def test_fields_touch_and_all_else_stands_apart() -> None:
    assert spaced(["Set", [["a", "1"], ["b", ["x", "y"]]]]) == "(Set ((a 1)(b (x y))))"
    assert spaced([]) == "()"


@pytest.mark.parametrize(
    "delta", [Set(GOOG), Patch(()), Patch((FieldSet("total_volume", 7),)), Remove()]
)
def test_a_typed_delta_comes_back(delta) -> None:
    assert CODEC.loads(CODEC.dumps(delta)) == delta


def test_a_patch_that_does_not_fit_is_refused_on_either_side() -> None:
    for op in (FieldSet("nothing", 1), FieldSet("vwap", object())):
        with pytest.raises(LocalProtocolError):
            CODEC.dumps(Patch((op,)))
    other = DeltaCodec(Schema("vwap", (Field("vwap", String()), Field("more", Int()))))
    for op in (FieldSet("vwap", "not a number"), FieldSet("more", 1)):
        with pytest.raises(RemoteProtocolError):
            CODEC.loads(other.dumps(Patch((op,))))


# --- The command ---------------------------------------------------------------------------------


def _run(*arguments: str, **options) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "ripple.wire", *arguments]
    return subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False, **options)


def test_a_capture_is_printed(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(CAPTURE)
    for done in (_run(str(path)), _run("-", input=CAPTURE)):
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.decode().splitlines()[1:] == LINES


def test_the_first_bad_frame_is_reported_with_its_offset(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    first = len(encode(FRAMES[0])) + len(encode(FRAMES[1]))
    path.write_bytes(CAPTURE[: first + 70] + b"!" + CAPTURE[first + 71 :])
    done = _run(str(path))
    assert done.returncode == 1
    assert done.stdout.decode().splitlines()[1:] == LINES[:1]
    assert done.stderr.startswith(f"ripple.wire: bad frame at byte {first}: CRC-32C".encode())


@pytest.mark.parametrize(
    ("capture", "complaint"),
    [
        (CAPTURE[:-1], b"into a frame"),
        (b"GET / HTTP/1.1\r\n", b"bad frame at byte 0: not the wire protocol"),
        (encode(Frame(4, b"no heartbeat")), b"bad frame at byte 0: malformed bin_prot"),
        (encode(Frame(16, TALK[6].to_bytes()[:-300])), b"bad frame at byte 0: malformed Arrow"),
    ],
)
def test_a_broken_capture_ends_with_one_line(capture: bytes, complaint: bytes) -> None:
    done = _run("-", input=capture)
    assert done.returncode == 1
    assert complaint in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_what_cannot_be_read_ends_with_one_line(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        done = _run(str(path))
        assert (done.returncode, done.stdout) == (2, b"")
        assert done.stderr.startswith(f"ripple.wire: {path}: ".encode())
        assert done.stderr.count(b"\n") == 1


def test_a_reader_that_leaves_ends_it_quietly(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(CAPTURE * 2000)
    with subprocess.Popen(
        [sys.executable, "-m", "ripple.wire", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 141
        assert process.stderr.read() == b""


def test_an_empty_capture_is_fine() -> None:
    from ripple.wire.__main__ import show

    out = io.StringIO()
    assert show(io.BytesIO(), out, DEFAULT_LIMITS) == 0
    assert out.getvalue() == ""
