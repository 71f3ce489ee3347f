"""Rejected records are counted by reason and kept as JSON that gives their bytes back."""

from __future__ import annotations

import base64
import datetime as dt
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

import pytest

import ripple as rp
from ripple.connectors.dead_letter import DeadLetters
from ripple.connectors.target import open_target
from ripple.core.errors import InputError
from ripple.model.batch import RAW_BYTES_MAX, Rejected

if TYPE_CHECKING:
    from pathlib import Path


def test_dead_letters_are_counted_and_written(tmp_path: Path) -> None:
    path = tmp_path / "dead.jsonl"
    letters = DeadLetters(open_target(path))
    cut = ("x" + "é" * RAW_BYTES_MAX).encode()[:RAW_BYTES_MAX]
    letters.write("trades", [Rejected(4, 9, "too few fields", 'ä,"1'.encode())])
    letters.write("trades", [])
    letters.write(
        "trades",
        [
            Rejected(5, 10, "line is not valid UTF-8", b"\xff\xfe"),
            Rejected(6, None, "too few fields", cut),
        ],
    )
    letters.close()
    first, second, third = [json.loads(line) for line in path.read_text().splitlines()]
    assert first == {
        "source": "trades",
        "offset": 4,
        "line_number": 9,
        "reason": "too few fields",
        "raw": 'ä,"1',
    }
    assert base64.b64decode(second["raw_base64"]) == b"\xff\xfe"
    assert third["raw"] == "x" + "é" * ((RAW_BYTES_MAX - 1) // 2)
    assert letters.counts == {"too few fields": 2, "line is not valid UTF-8": 1}
    assert letters.total == 3


def test_words_that_are_not_utf8_are_kept_as_escapes(tmp_path: Path) -> None:
    path = tmp_path / "dead.jsonl"
    letters = DeadLetters(open_target(path))
    letters.write("trades", [Rejected(0, 1, "m: ValueError: \ud800", b"\xed\xa0\x80")])
    letters.close()
    [letter] = [json.loads(line) for line in path.read_text().splitlines()]
    assert letter["reason"] == "m: ValueError: \\ud800"
    assert base64.b64decode(letter["raw_base64"]) == b"\xed\xa0\x80"


def test_without_a_target_dead_letters_are_only_counted() -> None:
    letters = DeadLetters()
    letters.write("trades", [Rejected(0, 1, "too few fields", b"")])
    letters.close()
    letters.close()
    assert letters.total == 1


@rp.record
class Fill:
    who: str
    px: Annotated[Decimal, rp.Decimal(10, 2)]
    day: dt.date
    at: dt.datetime | None


def test_dead_letter_of_a_step_shows_dates_times_and_decimals() -> None:
    def refuse(row: Fill) -> Fill:
        raise ValueError(row.who)

    fills = rp.Pipeline("p").source("fills", Fill).map("m", refuse, into=Fill).sink("out")
    when = dt.datetime(2026, 1, 31, 9, 30, tzinfo=dt.UTC)
    rows = [{"who": "a", "px": Decimal("1.5"), "day": when.date(), "at": at} for at in (when, None)]
    with pytest.raises(InputError, match="all 2 records were rejected"):
        rp.collect(fills, rows)
    with pytest.warns(rp.LostRecordsWarning):
        letters = rp.collect(fills, rows, max_rejected="100%").rejected["record"].to_pylist()
    assert [json.loads(letter) for letter in letters] == [
        {"who": "a", "px": "1.50", "day": "2026-01-31", "at": at}
        for at in ("2026-01-31T09:30:00.000000000Z", None)
    ]
