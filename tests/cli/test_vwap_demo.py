from __future__ import annotations

import gzip
import json
import re

import pytest
import zstandard

from tests.cli.processes import BOOK_TRADES, demo

SECOND_NS = 1_000_000_000
STATISTICS = r"""--- Ripple VWAP Demo Results ---
Events processed:  100000
Symbols:           100
Graph nodes:       \d+
Stabilizations:    100
Elapsed:           \d+\.\d{3}s
Throughput:        \d+ events/sec
Watermark:         100999000000 ns
Portfolio total:   10499\.96
Output records:    10000
"""


def test_trades_of_the_book_give_a_row_for_each_symbol_in_order_of_change():
    ended = demo("--stdin", given=BOOK_TRADES)
    assert ended.code == 0
    # (150.00 * 100 + 150.25 * 200 + 150.10 * 150) / 450 = 67565 / 450; the book prints 150.1222,
    # which is 67555 / 450, as if the second price were 150.20.
    assert ended.rows == ["AAPL,150.1444,450,3", "GOOG,175.5000,50,1"]


def test_rows_of_the_book_come_out_when_the_second_price_is_20_cents(tmp_path):
    trades = tmp_path / "trades.csv"
    trades.write_text(BOOK_TRADES.replace("150.25", "150.20"))
    assert demo("--file", trades).rows == ["AAPL,150.1222,450,3", "GOOG,175.5000,50,1"]


def test_synthetic_trades_give_the_statistics_of_the_book():
    ended = demo("--synthetic", 100_000)
    assert ended.code == 0
    assert len(ended.rows) == 10_000
    assert re.fullmatch(STATISTICS, ended.err), ended.err


def test_rows_of_a_batch_come_in_order_of_first_change():
    lines = "".join(
        f"{symbol},10,1,{time},X\n" for time, symbol in enumerate("AA BC CB AD".replace(" ", ""))
    )
    ended = demo("--stdin", "--batch", 2, given=lines)
    first_letters = [row[0] for row in ended.rows]
    assert first_letters == ["A", "B", "C", "C", "B", "A", "D"]


@pytest.mark.parametrize(("batch", "rows"), [(1, 4), (1_000_000, 2)])
def test_batches_of_any_size_end_with_the_same_row(batch, rows):
    ended = demo("--stdin", "--batch", batch, given=BOOK_TRADES)
    assert len(ended.rows) == rows
    assert [row for row in ended.rows if row.startswith("AAPL")][-1] == "AAPL,150.1444,450,3"


def test_final_gives_the_last_row_of_each_symbol_sorted():
    lines = "".join(f"{symbol},{price},1,{price},X\n" for price, symbol in enumerate("BABC", 1))
    ended = demo("--stdin", "--batch", 1, "--final", given=lines)
    assert ended.rows == ["A,2.0000,1,1", "B,2.0000,2,2", "C,4.0000,1,1"]
    assert "Output records:    3\n" in ended.err


def test_late_trade_prints_the_corrected_row_of_its_closed_window_again():
    times_s = [10, 20, 75, 30, 130, 0]
    lines = "".join(f"A,{10 + i},1,{t * SECOND_NS},X\n" for i, t in enumerate(times_s))
    ended = demo("--stdin", "--batch", 1, "--window", "60s", "--header", given=lines)
    assert ended.rows == [
        "symbol,window_start_ns,vwap,total_volume,trade_count",
        "A,0,10.5000,2,2",  # closed by the trade at 75 s
        "A,0,11.3333,3,3",  # corrected by the trade at 30 s
        f"A,{60 * SECOND_NS},12.0000,1,1",  # closed by the trade at 130 s
        f"A,{120 * SECOND_NS},14.0000,1,1",  # open at the end
    ]
    assert "Mildly late:       1\nVery late:         1 (not counted: " in ended.err
    assert "Portfolio" not in ended.err


def test_json_rows_have_the_same_columns():
    ended = demo("--stdin", "--format", "json", "--window", "60s", given=BOOK_TRADES)
    rows = [json.loads(line) for line in ended.rows]
    assert list(rows[0]) == ["symbol", "window_start_ns", "vwap", "total_volume", "trade_count"]
    assert 150.1444 in [row["vwap"] for row in rows if row["symbol"] == "AAPL"]


def test_malformed_lines_are_told_counted_kept_and_left_out(tmp_path):
    trades, letters = tmp_path / "trades.csv", tmp_path / "bad.jsonl"
    bad = {
        2: (b"AAPL,150.0,100,1", "too few fields"),
        3: (b"AAPL,150.0,100,1,X,Y", "too many fields"),
        4: (b"AAPL,\x1b[2J,100,1,X", "price is not a number"),
        5: (b"AAPL,150.0,0,1,X", "size is not positive"),
        6: (b"AAPL,150.0,-3,1,X", "size is not positive"),
        7: (b"AAPL,inf,100,1,X", "price is not finite"),
        8: (b"AAPL,150.0,1.5,1,X", "size is not an integer"),
        9: (b"AAPL,150.0,1,-1,X", "timestamp_ns is not in [0, 4611686018427387904)"),
        10: (b"AAPL\xff,150.0,1,1,X", "line is not valid UTF-8"),
        11: (b",150.0,1,1,X", "symbol is empty"),
        12: (b"A" * 100_000_000, "line is longer than 1048576 bytes"),
    }
    good = b"AAPL,150.0,100,1,X"
    with trades.open("wb") as file:
        file.write(b"\n".join([good, *(line for line, _ in bad.values()), good, b""]))
    ended = demo("--file", trades, "--dead-letter", letters)
    assert ended.code == 0
    assert ended.rows == ["AAPL,150.0000,200,2"]
    told = ended.err.split("--- Ripple")[0].splitlines()
    assert told[:5] == [
        f"ripple-vwap-demo: {trades}, line {number}: {reason}: {line.decode()!r}"
        for number, (line, reason) in list(bad.items())[:5]
    ]
    assert told[5] == f"Rejected records: 11 (kept in {letters})"
    counted = {
        reason: int(count) for count, reason in (line.split(maxsplit=1) for line in told[6:])
    }
    reasons = [reason for _, reason in bad.values()]
    assert counted == {reason: reasons.count(reason) for reason in reasons}
    assert "Events processed:  13\n" in ended.err
    assert "Rejected:          11\n" in ended.err
    kept = [json.loads(line) for line in letters.read_text().splitlines()]
    assert [(one["line_number"], one["reason"]) for one in kept] == [
        (number, reason) for number, (_, reason) in bad.items()
    ]


def test_heading_of_trades_gets_no_hint_at_header_which_is_about_the_output(tmp_path):
    trades = tmp_path / "trades.csv"
    trades.write_text("symbol,price,size,timestamp_ns,venue\nA,1.5,2,3,X\n")
    ended = demo("--file", trades)
    assert f"{trades}, line 1: price is not a number" in ended.err
    assert "--header" not in ended.err


def test_strict_ends_at_the_first_malformed_line_with_whole_rows_before_it(tmp_path):
    letters = tmp_path / "bad.jsonl"
    lines = "A,1,1,1,X\nA,2,1,2,X\nB,0,oops,3,X\nB,worse\nA,3,1,4,X\n"
    ended = demo("--stdin", "--strict", "--batch", 2, "--dead-letter", letters, given=lines)
    assert ended.code == 1
    assert ended.only_line == "ripple-vwap-demo: trades, line 3: size is not an integer"
    assert ended.out == "A,1.5000,2,2\n"
    assert [json.loads(line)["line_number"] for line in letters.read_text().splitlines()] == [3]


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_compressed_files_are_read_and_cut_ones_fail_after_their_whole_lines(tmp_path, suffix):
    lines = "".join(f"S{i % 10},{i % 97}.5,1,{i},X\n" for i in range(20_000)).encode()
    packed = gzip.compress(lines) if suffix == ".gz" else zstandard.compress(lines)
    whole, cut = tmp_path / f"whole.csv{suffix}", tmp_path / f"cut.csv{suffix}"
    whole.write_bytes(packed)
    cut.write_bytes(packed[: len(packed) * 3 // 4])
    assert "Events processed:  20000\n" in demo("--file", whole, "--final").err
    ended = demo("--file", cut)
    assert ended.code == 1
    assert str(cut) in ended.only_line
    assert all(row.count(",") == 3 for row in ended.rows)
    if suffix == ".gz":
        assert len(ended.rows) > 50  # what came before the cut was used


def test_empty_input_is_no_error():
    ended = demo("--stdin")
    assert (ended.code, ended.out) == (0, "")
    assert "Watermark:         none\n" in ended.err
    assert "Portfolio total:   0.00\n" in ended.err


def test_input_of_rejected_records_alone_is_a_failure(tmp_path):
    ended = demo("--stdin", given="a,b\n")
    assert (ended.code, ended.out) == (1, "")
    assert "the only record of standard input was rejected; --dead-letter FILE" in ended.err
    file = tmp_path / "headings.csv"
    file.write_text("symbol,price,size,timestamp_ns,venue\n")
    ended = demo("--file", file, "--dead-letter", tmp_path / "d.jsonl")
    assert ended.code == 1
    assert ended.err.splitlines()[-1].endswith(f"it is in {tmp_path}/d.jsonl")
