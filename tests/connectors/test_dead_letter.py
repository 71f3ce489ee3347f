"""Rejected records are counted by reason and kept as JSON that gives their bytes back."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

from ripple.connectors.dead_letter import DeadLetters
from ripple.connectors.target import open_target
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
