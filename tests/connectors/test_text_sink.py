"""Bulk formatting writes what printf, repr, csv and json write, one value at a time."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ripple.connectors.contract import NOWHERE
from ripple.connectors.files.text.sink import TextFormat, TextSink
from ripple.connectors.target import ClosedPipeError, StreamTarget, open_target
from ripple.core.errors import OutputError
from tests.examples import EXAMPLES, SAMPLED

if TYPE_CHECKING:
    from pathlib import Path

DOUBLES = st.one_of(
    st.floats(),
    st.floats(-1e6, 1e6),
    # Exact ties of four decimals, and their neighbours.
    st.builds(lambda k, e: k / 2**e, st.integers(-(10**9), 10**9), st.integers(0, 20)),
    st.builds(
        lambda k, up: math.nextafter(k / 20000, up),
        st.integers(0, 10**7),
        st.sampled_from([0, 1e9]),
    ),
    st.integers(-(10**17), 10**17).map(float),
    st.tuples(st.integers(-(10**16), 10**16), st.integers(0, 9)).map(
        lambda one: one[0] / 10 ** one[1]
    ),
    st.tuples(st.integers(1, 10**15), st.integers(1, 7), st.sampled_from((0.0, math.inf))).map(
        lambda one: math.nextafter(one[0] / 10 ** one[1], one[2])
    ),
)


class MemoryTarget:
    name = promise = "memory"

    def __init__(self) -> None:
        self.data, self.ended = b"", ""

    def write(self, data: bytes | memoryview) -> int:
        self.data += bytes(data)
        return len(data)

    def commit(self) -> None:
        self.ended = "committed"

    def close(self) -> None:
        self.ended = self.ended or "given up"


def written(changes: pa.RecordBatch, text_format: TextFormat) -> str:
    target = MemoryTarget()
    TextSink(target, text_format).write(changes, NOWHERE)
    return target.data.decode()


@settings(max_examples=48 * EXAMPLES // SAMPLED)
@given(st.lists(DOUBLES, min_size=1, max_size=20), st.integers(0, 20))
@example([0.5, 1.5, 2.5, -0.5, 0.0, -0.0, 1e300, 5e-324, 2.0**63, 2.0**53, 1e22, 1e16, 1e-5], 0)
@example(
    [0.00005, 0.00015, 1.00005, 0.03125, 123456.78125, 9007199254740993.5, 922337203685477.5], 4
)
@example([0.025, 0.1, 0.99999999, 9.999999949, 9999999.99999995, 99999999.5, -1e-4], 7)
@example([0.025, 0.1, 0.99999999, 9.999999949, 9999999.99999995, 99999999.5, -1e-4], 8)
def test_doubles_are_written_as_printf_and_repr_write_them(
    values: list[float], decimals: int
) -> None:
    batch = pa.record_batch({"v": pa.array(values, pa.float64())})
    fixed = written(batch, TextFormat(decimals={"v": decimals})).splitlines()
    assert fixed == [f"{v:.{decimals}f}" for v in values]
    shortest = written(batch, TextFormat()).splitlines()
    assert shortest == [repr(v) for v in values]


@pytest.mark.parametrize("decimals", range(11))
def test_many_numbers_are_written_as_printf_writes_them(decimals: int) -> None:
    chance = np.random.default_rng(decimals)
    count = 20_000 * EXAMPLES
    ties = chance.integers(-(10**9), 10**9, count) / 2.0 ** chance.integers(0, 30, count)
    steps = chance.integers(0, 10**9, count) / 10.0 ** chance.integers(0, 12, count)
    halves = (2 * chance.integers(0, 10**6, count) + 1) / (2 * 10.0**decimals)
    whole = np.ldexp(chance.random(count), chance.integers(-20, 64, count))
    values = [*ties, *steps, *np.nextafter(halves, 0), *halves, *np.nextafter(halves, 1e9), *whole]
    integers = [*map(int, ties), *range(2000), *(10**k - d for k in range(19) for d in (0, 1))]
    batch = pa.record_batch({"v": pa.array(values, pa.float64())})
    lines = written(batch, TextFormat(decimals={"v": decimals})).splitlines()
    assert lines == [f"{v:.{decimals}f}" for v in values]
    batch = pa.record_batch({"v": pa.array(integers, pa.int64())})
    assert written(batch, TextFormat()).splitlines() == [str(v) for v in integers]


@st.composite
def tables(draw: st.DrawFn) -> pa.RecordBatch:
    text = st.text(
        st.one_of(st.sampled_from('",#\\\n\r\t\b\x00\x1f\x7fab'), st.characters(codec="utf-8"))
    )
    columns = [
        (text, pa.string()),
        (st.integers(-(1 << 63), (1 << 63) - 1), pa.int64()),
        (DOUBLES, pa.float64()),
        (st.booleans(), pa.bool_()),
        (st.lists(text, max_size=2), pa.list_(pa.string())),
        (st.integers(0, 255), pa.uint8()),
    ]
    rows = draw(st.integers(1, 12))
    skipped = draw(st.integers(0, rows - 1))
    arrays = [
        pa.array(draw(st.lists(st.one_of(st.none(), s), min_size=rows, max_size=rows)), kind)
        for s, kind in columns
    ]
    return pa.record_batch(arrays, names=list('ab"def')).slice(skipped)


@settings(max_examples=36 * EXAMPLES // SAMPLED)
@given(tables())
def test_csv_reads_back_with_the_standard_reader(batch: pa.RecordBatch) -> None:
    text = written(batch, TextFormat(header=True))
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    assert header == batch.schema.names
    for row, found in zip(batch.to_pylist(), rows, strict=True):
        a, b, c, d, e, f = row.values()
        assert found == [
            a or "",
            "" if b is None else str(b),
            "" if c is None else repr(c),
            "" if d is None else str(d).lower(),
            "" if e is None else json.dumps(e, ensure_ascii=False),
            "" if f is None else str(f),
        ]


@settings(max_examples=36 * EXAMPLES // SAMPLED)
@given(tables())
def test_json_lines_are_what_the_standard_writer_writes(batch: pa.RecordBatch) -> None:
    def plain(value: object) -> object:
        return None if isinstance(value, float) and not math.isfinite(value) else value

    expected = [
        json.dumps({k: plain(v) for k, v in row.items()}, ensure_ascii=False, separators=(",", ":"))
        for row in batch.drop_columns(["e"]).to_pylist()
    ]
    text = written(batch.drop_columns(["e"]), TextFormat(form="json"))
    assert text.split("\n")[:-1] == expected
    for line, row in zip(
        written(batch, TextFormat(form="json")).split("\n")[:-1], batch.to_pylist(), strict=True
    ):
        assert json.loads(line)["e"] == row["e"]


NOT_FINITE = [math.nan, math.inf, -math.inf]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (pa.list_(pa.float64()), NOT_FINITE, "[null, null, null]"),
        (pa.list_(pa.list_(pa.float32())), [[1.5], NOT_FINITE], "[[1.5], [null, null, null]]"),
        (pa.struct({"a": pa.float64()}), {"a": math.nan}, '{"a": null}'),
        (pa.list_(pa.struct({"a": pa.float64()})), [{"a": math.inf}], '[{"a": null}]'),
        (pa.map_(pa.string(), pa.float64()), [("a", math.nan)], '[["a", null]]'),
        (pa.list_(pa.float64()).value_type, math.nan, "null"),
    ],
)
@pytest.mark.parametrize("form", ["json", "csv"])
def test_json_has_no_numbers_that_are_none_at_any_depth(
    kind: pa.DataType, value: object, expected: str, form: Literal["json", "csv"]
) -> None:
    text = written(pa.record_batch({"v": pa.array([value], kind)}), TextFormat(form=form))
    if form == "json":
        assert text == f'{{"v":{expected}}}\n'
    elif pa.types.is_nested(kind):
        assert next(csv.reader([text])) == [expected]


def test_text_that_is_not_utf8_is_not_written() -> None:
    text = pa.array([b"a", b"\xff"], pa.binary()).view(pa.string())
    for column in (text, pa.ListArray.from_arrays([0, 1, 2], text), text.dictionary_encode()):
        for form in ("csv", "json"):
            with pytest.raises(OutputError, match="cannot write memory: field 'v'"):
                written(pa.record_batch({"v": column}), TextFormat(form=form))


def test_rows_are_written_as_the_book_shows() -> None:
    batch = pa.record_batch(
        {"symbol": ["AAPL", "GOOG"], "vwap": [150.12222, 175.5], "n": [450, 50], "c": [3, 1]}
    )
    text = written(batch, TextFormat(decimals={"vwap": 4}))
    assert text == "AAPL,150.1222,450,3\nGOOG,175.5000,50,1\n"


def test_a_null_and_an_empty_string_differ() -> None:
    batch = pa.record_batch({"a": pa.array(["", None, "#x"]), "b": pa.array([1, None, 3])})
    assert written(batch, TextFormat()) == '"",1\n,\n"#x",3\n'


CHANGES = pa.record_batch(
    {"k": ["a", "b", "c"], "op": pa.array([0, 2, 1], pa.int8()), "v": [1, None, 3]}
)


def test_removes_are_skipped_or_marked() -> None:
    assert written(CHANGES, TextFormat()) == "a,1\nc,3\n"
    assert written(CHANGES, TextFormat(removes="mark")) == "set,a,1\nremove,b,\npatch,c,3\n"
    rows = CHANGES.select(["k", "v"])
    assert written(rows, TextFormat(removes="mark")) == "set,a,1\nset,b,\nset,c,3\n"
    marked = written(CHANGES, TextFormat(form="json", removes="mark")).splitlines()
    assert marked[1] == '{"op":"remove","k":"b","v":null}'


def test_an_op_that_is_none_is_not_written() -> None:
    changes = pa.record_batch({"k": ["a", "b"], "op": pa.array([0, 4], pa.int8())})
    with pytest.raises(IndexError, match="none of"):
        written(changes, TextFormat(removes="mark"))


def test_columns_are_written_in_the_order_asked_for() -> None:
    assert written(CHANGES, TextFormat(header=True, columns=("v", "k"))) == "v,k\n1,a\n3,c\n"
    marked = written(CHANGES, TextFormat("json", removes="mark", columns=("v",)))
    assert marked.splitlines()[1] == '{"op":"remove","v":null}'


def test_later_batches_may_change_types_but_not_names() -> None:
    target = MemoryTarget()
    sink = TextSink(target, TextFormat(header=True))
    sink.write(pa.record_batch({"k": ["a"], "v": [1]}), NOWHERE)
    sink.write(pa.record_batch({"k": pa.array(["b"]).dictionary_encode(), "v": [1.5]}), NOWHERE)
    with pytest.raises(OutputError, match="memory has columns k, v, but changes came with k, w"):
        sink.write(pa.record_batch({"k": ["a"], "w": [1]}), NOWHERE)
    assert target.data == b"k,v\na,1\nb,1.5\n"


def test_a_file_appears_when_committed_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("old\n")
    sink = TextSink(open_target(path))
    sink.write(CHANGES, NOWHERE)
    assert path.read_text() == "old\n"
    sink.commit(NOWHERE)
    assert path.read_text() == "a,1\nc,3\n"
    assert os.listdir(tmp_path) == ["out.csv"]


def test_a_file_that_is_not_committed_leaves_nothing(tmp_path: Path) -> None:
    sink = TextSink(open_target(tmp_path / "out.csv"))
    sink.write(CHANGES, NOWHERE)
    sink.close()
    sink.close()
    assert os.listdir(tmp_path) == []


def test_a_file_that_cannot_take_its_name_leaves_nothing(tmp_path: Path) -> None:
    sink = TextSink(open_target(tmp_path / "out.csv"))
    (tmp_path / "out.csv").mkdir()
    with pytest.raises(OutputError, match="Is a directory"):
        sink.commit(NOWHERE)
    assert os.listdir(tmp_path) == ["out.csv"]


def test_a_link_keeps_pointing_to_the_file_written(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "out.csv"
    link.symlink_to(tmp_path / "real" / "file.csv")
    sink = TextSink(open_target(link))
    sink.write(CHANGES, NOWHERE)
    sink.commit(NOWHERE)
    assert link.is_symlink()
    assert (tmp_path / "real" / "file.csv").read_text() == "a,1\nc,3\n"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o666])
def test_a_file_keeps_the_permissions_of_the_one_it_replaces(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "out.csv"
    path.write_text("old\n")
    path.chmod(mode)
    sink = TextSink(open_target(path))
    [temporary] = (other for other in tmp_path.iterdir() if other != path)
    assert temporary.stat().st_mode & 0o777 == mode  # at no moment can more people read it
    sink.write(CHANGES, NOWHERE)
    path.chmod(0o400)
    sink.commit(NOWHERE)
    assert path.stat().st_mode & 0o777 == 0o400
    assert path.read_text() == "a,1\nc,3\n"


def test_a_new_file_has_the_permissions_of_new_files(tmp_path: Path) -> None:
    TextSink(open_target(tmp_path / "out.csv")).commit(NOWHERE)
    (tmp_path / "usual").touch()
    usual = (tmp_path / "usual").stat().st_mode
    assert (tmp_path / "out.csv").stat().st_mode == usual


def test_targets_that_cannot_be_written_say_so(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="it is a directory"):
        open_target(tmp_path)
    with pytest.raises(OutputError, match=r"cannot write .*/no/out\.csv: No such file"):
        open_target(tmp_path / "no" / "out.csv")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs the device that is always full")
def test_a_full_disk_names_the_target() -> None:
    sink = TextSink(open_target("/dev/full"))
    with pytest.raises(OutputError, match="cannot write /dev/full: No space left"):
        sink.write(CHANGES, NOWHERE)
    sink.close()


def test_a_closed_pipe_is_its_own_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    sink = TextSink(StreamTarget(writer, "pipe"))
    with pytest.raises(ClosedPipeError):
        sink.write(CHANGES, NOWHERE)
    sink.close()


def test_standard_output_receives_all_of_a_large_batch() -> None:
    program = (
        "import pyarrow as pa\n"
        "from ripple.connectors.contract import NOWHERE\n"
        "from ripple.connectors.target import open_target\n"
        "from ripple.connectors.files.text.sink import TextSink\n"
        "sink = TextSink(open_target('-'))\n"
        "sink.write(pa.record_batch({'n': pa.array(range(200_000))}), NOWHERE)\n"
        "sink.commit(NOWHERE)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"".join(b"%d\n" % i for i in range(200_000))
