from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ripple.core.hashing import partition_of
from tests.cli.processes import BOOK_TRADES, RIPPLE, ripple, start
from tests.patience import PATIENCE_S

ROWS = [
    {"symbol": "AAPL", "price": 150.0, "size": 100, "timestamp_ns": 1_709_000_000 * 10**9},
    {"symbol": "AAPL", "price": 150.25, "size": 200, "timestamp_ns": 1_709_000_001 * 10**9},
    {"symbol": "GOOG", "price": 175.5, "size": 50, "timestamp_ns": 1_709_000_001_500_000_000},
    {"symbol": "AAPL", "price": 150.1, "size": 150, "timestamp_ns": 1_709_000_002 * 10**9},
]
TRADES = [dict(row, venue="XNYS" if row["symbol"] == "GOOG" else "XNAS") for row in ROWS]


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_trades_come_back_from_every_kind_of_file(tmp_path: Path) -> None:
    topic = tmp_path / "trades"
    made = ripple("log", "create", "--schema", "trade", topic, "--compression", "zstd")
    assert (made.code, made.err) == (0, "")
    (tmp_path / "a.csv").write_text(BOOK_TRADES)
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in TRADES))
    pq.write_table(pa.Table.from_pylist(TRADES), tmp_path / "a.parquet")
    for name in ("a.csv", "a.jsonl", "a.parquet"):
        appended = ripple("log", "append", topic, tmp_path / name)
        assert (appended.code, appended.only_line) == (0, "appended 4 records")
    assert ripple("log", "append", topic, "-", given=BOOK_TRADES).code == 0
    given = (tmp_path / "a.jsonl").read_bytes()
    assert ripple("log", "append", topic, "-", "--format", "jsonl", given=given).code == 0
    assert lines(ripple("log", "tail", topic).out) == TRADES * 5
    assert lines(ripple("log", "tail", topic, "--from", "18").out) == TRADES[2:]
    late = ripple("log", "tail", topic, "--from", "2024-02-27T02:13:21.2Z", "-n", "1")
    assert lines(late.out) == [TRADES[2]]
    later = ripple("log", "tail", topic, "--from", "2024-02-27T02:13:21.500001Z", "-n", "1")
    assert lines(later.out) == [TRADES[3]]
    known = json.loads(ripple("log", "info", topic, "--json").out)
    assert known["held"][0]["next_offset"] == 20
    assert known["time_field"] == "timestamp_ns"
    assert "offsets 0 to 20" in ripple("log", "info", topic).out
    assert "20 records in 5 frames" in ripple("log", "verify", topic).out


def test_keys_go_to_partitions(tmp_path: Path) -> None:
    topic = tmp_path / "trades"
    assert (
        ripple(
            "log", "create", "--schema", "trade", topic, "--partitions", "3", "--key", "symbol"
        ).code
        == 0
    )
    assert ripple("log", "append", topic, "-", given=BOOK_TRADES).code == 0
    for partition in range(3):
        rows = lines(ripple("log", "tail", topic, "--partition", partition).out)
        assert rows == [
            row for row in TRADES if partition_of(str(row["symbol"]).encode(), 3) == partition
        ]
    apart = [lines(ripple("log", "tail", f"{topic}/{number}").out) for number in range(3)]
    whole = ripple("log", "tail", topic)
    assert lines(whole.out) == [row for rows in apart for row in rows]
    assert whole.err.splitlines() == [
        f"ripple: partition {number} of trades" for number in range(3)
    ]
    assert lines(ripple("log", "tail", topic, "-n", "2").out) == lines(whole.out)[:2]
    assert "one is followed at a time: say which" in ripple("log", "tail", topic, "-f").only_line
    late = ripple("log", "tail", topic, "--from", "1")
    assert "offset 1 is of one of them: say which, as in --partition 0" in late.only_line


def test_malformed_records_are_reported_and_skipped(tmp_path: Path) -> None:
    topic = tmp_path / "trades"
    assert ripple("log", "create", "--schema", "trade", topic).code == 0
    given = "\n".join(["{", json.dumps(TRADES[0]), "", '{"symbol": "A"}', json.dumps(TRADES[1])])
    done = ripple("log", "append", topic, "-", "--format", "jsonl", given=given)
    assert done.code == 0
    assert "line 1: not a JSON record" in done.err
    assert "Rejected records: 2" in done.err
    assert lines(ripple("log", "tail", topic).out) == TRADES[:2]


def test_append_that_rejects_every_record_fails_and_says_where_they_are(tmp_path: Path) -> None:
    topic, kept = tmp_path / "trades", tmp_path / "kept.jsonl"
    assert ripple("log", "create", "--schema", "trade", topic).code == 0
    failed = ripple("log", "append", topic, "-", given="A,x,1,1,X\nB,x,1,1,X\n")
    error = failed.err.splitlines()[-1]
    assert (failed.code, "all 2 records of - were rejected" in error) == (1, True)
    assert "--dead-letter FILE keeps them" in error
    failed = ripple("log", "append", topic, "-", "--dead-letter", kept, given="A,x,1,1,X\n")
    error = failed.err.splitlines()[-1]
    assert (failed.code, error) == (
        1,
        f"ripple: the only record of - was rejected; it is in {kept}",
    )
    assert len(kept.read_text().splitlines()) == 1
    assert ripple("log", "append", topic, "-", given="").code == 0


def test_schema_of_a_log_is_named_never_assumed(tmp_path: Path) -> None:
    topic = tmp_path / "trades"
    failed = ripple("log", "create", topic)
    assert (failed.code, "--schema FILE.py" in failed.only_line) == (1, True)
    assert not topic.exists()
    for place in ("examples/vwap.py", "examples/vwap.py:pipeline"):
        assert ripple("log", "create", topic / place[-3:], "--schema", place).code == 0
    info = json.loads(ripple("log", "info", topic / ".py", "--json").out)
    assert info["time_field"] == "timestamp_ns"


def test_text_that_is_not_utf8_is_left_out_and_the_log_stays_readable(tmp_path: Path) -> None:
    topic = tmp_path / "trades"
    assert ripple("log", "create", "--schema", "trade", topic).code == 0
    bad = dict(TRADES[1], symbol="B?")
    (tmp_path / "a.jsonl").write_bytes(
        b"\n".join(json.dumps(row).encode().replace(b"?", b"\xff") for row in [TRADES[0], bad])
    )
    table = pa.Table.from_pylist([TRADES[2], bad])
    text = pa.array([b"GOOG", b"B\xff"], pa.binary()).view(pa.string())
    pq.write_table(table.set_column(0, "symbol", text), tmp_path / "a.parquet")
    for name, reason in (
        ("a.jsonl", "line 2: line is not valid UTF-8"),
        ("a.parquet", "offset 1: symbol is not valid UTF-8"),
    ):
        done = ripple("log", "append", topic, tmp_path / name)
        assert (done.code, done.err.count("appended 1 record")) == (0, 1)
        assert reason in done.err
    assert ripple("log", "verify", topic).code == 0
    assert lines(ripple("log", "tail", topic).out) == [TRADES[0], TRADES[2]]


def test_damage_ends_verify_with_file_and_offset(tmp_path: Path) -> None:
    topic = tmp_path / "trades"
    assert ripple("log", "create", "--schema", "trade", topic).code == 0
    assert ripple("log", "append", topic, "-", given=BOOK_TRADES).code == 0
    segment = topic / "0" / "00000000000000000000.log"
    data = bytearray(segment.read_bytes())
    data[200] ^= 1
    segment.write_bytes(data)
    found = ripple("log", "verify", topic)
    assert found.code == 1
    assert "trades/0/00000000000000000000.log is damaged at byte 0 (offset 0)" in found.out
    refused = ripple("log", "append", topic, "-", given=BOOK_TRADES)
    assert refused.code == 1
    assert "damaged" in refused.err
    tail = ripple("log", "tail", topic)
    assert (tail.code, tail.out) == (1, "")
    assert "but records up to 4 were durable" in tail.only_line
    info = ripple("log", "info", topic)
    assert info.code == 0  # it looks at headers only


def test_advice_of_verify_repairs_the_log(tmp_path: Path) -> None:
    topic = tmp_path / "trades of mine"
    assert ripple("log", "create", "--schema", "trade", topic).code == 0
    assert ripple("log", "append", topic, "-", "--batch", "1", given=BOOK_TRADES).code == 0
    segment = topic / "0" / "00000000000000000000.log"
    segment.write_bytes(segment.read_bytes()[:-1])
    assert ripple("log", "info", topic).code == 1
    assert json.loads(ripple("log", "info", topic, "--json").out)["held"][0]["damage"]
    said = ripple("log", "verify", topic)
    assert (said.code, said.rows[0].count("DAMAGED")) == (1, 1)
    advice = said.rows[1].partition(": ripple ")[2]
    assert advice == f"log repair '{topic}' --partition 0 --give-up 3-3"
    wrong = ripple("log", "repair", topic, "--give-up", "2-3")
    assert (wrong.code, "the lost offsets are 3-3" in wrong.only_line) == (1, True)
    assert "gave up 1 record, 3-3" in ripple(*shlex.split(advice)).out
    said = ripple("log", "verify", topic)
    assert (said.code, "1 record lost and given up" in said.out) == (0, True)
    assert ripple("log", "append", topic, "-", given=BOOK_TRADES).code == 0
    tail = ripple("log", "tail", topic)
    assert (tail.code, lines(tail.out)) == (0, TRADES[:3] + TRADES)
    assert "offset 3: it was lost from the log and given up" in tail.err


def test_log_is_the_same_with_its_prefix_and_without(tmp_path: Path) -> None:
    topic = tmp_path / "data" / "t"
    assert (
        ripple("log", "create", "--schema", "trade", f"log:{topic}", "--partitions", "2").code == 0
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]
    for place in (f"log:{topic}", topic):
        assert ripple("log", "append", place, "-", given=BOOK_TRADES).code == 0
    for place in (f"log:{topic}", f"log:{topic}/0", topic, f"{topic}/0"):
        assert lines(ripple("log", "tail", place).out) == TRADES * 2
        assert ripple("log", "verify", place).code == 0
    assert ripple("log", "tail", f"{topic}/1").out == ""
    assert "offsets 0 to 8" in ripple("log", "info", f"log:{topic}").out
    two = ripple("log", "tail", f"{topic}/1", "--partition", "0")
    assert (two.code, "name two partitions" in two.only_line) == (1, True)
    for action in (("append", f"{topic}/0", "-"), ("info", f"{topic}/0")):
        assert "is one partition: name the topic" in ripple("log", *action).only_line


def test_wrong_use_is_reported_in_one_line(tmp_path: Path) -> None:
    topic = tmp_path / "trades"
    assert "create it first" in ripple("log", "append", topic, "-").only_line
    assert (
        "not 'rar'"
        in ripple("log", "create", "--schema", "trade", topic, "--compression", "rar").only_line
    )
    assert ripple("log", "create", "--schema", "trade", topic).code == 0
    assert "already" in ripple("log", "create", "--schema", "trade", topic).only_line
    assert "neither an offset nor a time" in ripple("log", "tail", topic, "--from", "x").only_line
    assert "offset 9 does not exist" in ripple("log", "tail", topic, "--from", "9").only_line


def test_tail_follows_a_writer_in_another_process(tmp_path: Path) -> None:
    topic = tmp_path / "trades"
    assert ripple("log", "create", "--schema", "trade", topic).code == 0
    with (
        start(RIPPLE, "log", "tail", topic, "-f", "-n", "8") as tail,
        start(RIPPLE, "log", "append", topic, "-") as writer,
    ):
        assert tail.stdout
        assert writer.stdin
        writer.stdin.write(BOOK_TRADES.encode())
        assert [json.loads(tail.stdout.readline()) for _ in range(4)] == TRADES
        # The writer still runs: nobody else may append, and is told who holds the partition.
        refused = ripple("log", "append", topic, "-", given=BOOK_TRADES)
        assert refused.code == 1
        assert f"ripple log append, process {writer.pid}" in refused.err
        writer.stdin.write(BOOK_TRADES.encode())
        assert [json.loads(tail.stdout.readline()) for _ in range(4)] == TRADES
        assert tail.wait(PATIENCE_S) == 0
        writer.stdin.close()
        assert writer.wait(PATIENCE_S) == 0


@pytest.mark.services
def test_log_of_a_killed_writer_can_be_continued(tmp_path: Path) -> None:
    topic = tmp_path / "trades"
    assert ripple("log", "create", "--schema", "trade", topic).code == 0
    for _ in range(2):
        writer = start(RIPPLE, "log", "append", topic, "synthetic:100000000", "--batch", "100")
        time.sleep(1.5)
        writer.kill()
        writer.communicate()
        assert writer.returncode == -9
    verified = ripple("log", "verify", topic)
    assert ripple("log", "append", topic, "-", given=BOOK_TRADES).code == 0
    assert ripple("log", "verify", topic).code == 0, verified.out
    last = subprocess.run(
        [*RIPPLE, "log", "tail", topic], capture_output=True, check=True
    ).stdout.splitlines()[-4:]
    assert [json.loads(line) for line in last] == TRADES
    assert os.path.exists(topic / "0")
