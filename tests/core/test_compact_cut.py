"""Cuts of many paths in their short form, against the mapping that they are."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.connectors.contract import Commit
from ripple.connectors.files.text.cut_record import from_json, to_json
from ripple.core.compact_cut import ENTRIES_AS_THEY_ARE, loaded, stored
from ripple.core.cut import between, is_within, of_sender
from ripple.task.repartition.rows import Mark
from tests.examples import EXAMPLES, SAMPLED

OFFSETS = st.integers(0, (1 << 63) - 1)


def of_stages(*counts: int, source: str = "us-equities-trades", behind: int = 0) -> dict[str, int]:
    """Return the cut of a partition behind stages with so many partitions, the first one last."""
    *later, first = counts
    ways = [""]
    for count in later:
        ways = [f"{way}{number}/" for way in ways for number in range(count)]
    return {
        f"{way}{number}/{source}/{number}": 9_000_000 + number * 17 - (at * 7919) % (behind + 1)
        for at, way in enumerate(ways)
        for number in range(first)
    }


def size_of(cut: dict[str, int]) -> int:
    return len(json.dumps(stored(cut)))


@st.composite
def cuts(draw: st.DrawFn) -> dict[str, int]:
    counts = draw(st.lists(st.integers(1, 12), max_size=3))
    sources = draw(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=6, unique=True))
    ways = [""]
    for count in counts:
        ways = [f"{way}{number}/" for way in ways for number in range(count)]
    names = [f"{way}{source}" for way in ways for source in sources][:600]
    left = draw(st.sets(st.sampled_from(names)) if draw(st.booleans()) else st.just(set()))
    names = [name for name in dict.fromkeys(names) if name not in left]
    if draw(st.booleans()):
        names.sort()
    base = draw(OFFSETS)
    return {
        name: draw(OFFSETS) if at % 50 == 0 else max(0, base - at % 7)
        for at, name in enumerate(names)
    }


@settings(max_examples=60 * EXAMPLES // SAMPLED, deadline=None)
@given(cuts())
def test_a_stored_cut_is_loaded_as_it_was_in_its_order(cut: dict[str, int]) -> None:
    found = loaded(json.loads(json.dumps(stored(cut))))

    assert list(found.items()) == list(cut.items())


@settings(max_examples=20 * EXAMPLES // SAMPLED, deadline=None)
@given(cuts(), cuts())
def test_comparisons_do_not_see_the_form(one: dict[str, int], other: dict[str, int]) -> None:
    short, long = loaded(stored(one)), loaded(stored(other))

    assert is_within(short, long) == is_within(one, other)
    assert between(short, long) == between(one, other)
    assert of_sender(short, "1") == of_sender(one, "1")


def test_a_cut_of_few_inputs_is_stored_as_it_was() -> None:
    cut = {f"trades/{number}": number for number in range(ENTRIES_AS_THEY_ARE)}

    assert stored(cut) == cut
    assert to_json(Commit(cut, "d")) == {"cut": cut, "digest": "d"}


def test_records_of_the_form_before_are_read() -> None:
    cut = of_stages(8, 8, 32)
    before = json.loads(json.dumps({"cut": cut, "digest": "d"}))

    assert from_json(before) == Commit(cut, "d")
    assert Mark.of(json.dumps({"since": None, "cut": cut}), 7) == Mark(None, cut, 7)


def test_a_mark_of_many_paths_is_read_again() -> None:
    mark = Mark(of_stages(8, 32), of_stages(8, 32, behind=3), 7)

    assert Mark.of(mark.to_text(), 7) == mark


def test_a_cut_of_three_stages_takes_less_than_a_kilobyte() -> None:
    assert len(json.dumps(of_stages(8, 8, 32))) > 70_000

    assert size_of(of_stages(8, 8, 32)) < 600
    assert size_of(of_stages(8, 8, 32, behind=1)) < 1_000


def test_a_cut_of_paths_that_lag_stays_small() -> None:
    assert size_of(of_stages(8, 8, 32, behind=300)) < 4_000
    assert size_of(of_stages(8, 8, 128)) < 1_500


def short(run: bytes) -> str:
    return "2:" + base64.b85encode(zlib.compress(run)).decode()


@pytest.mark.parametrize(
    ("held", "why"),
    [
        ("", "begins with ''"),
        ("3:abc", "begins with '3:abc'"),
        (7, "begins with '7'"),
        (None, "begins with 'None'"),
        ("2:", "cannot be read"),
        ("2:\x00", "cannot be read"),
        ("2:" + base64.b85encode(b"no zlib").decode(), "cannot be read"),
        (short(b"\x00\x01\x05ab"), "cannot be read"),
        (short(b"\xff" * 12), "more than 64 bits"),
        (short(b"\x00\x00\x07"), "contradicts itself"),
        (short(b"\x00\x01\x01a\x03\x04"), "contradicts itself"),
        (short(b"\x02\xff\xff\x3f\xff\xff\x3f\x01\x01a"), "paths, more than"),
        (short(b"\xff\xff\xff\x7f"), "paths, more than"),
        (short(b"\x03" + b"\x80\x80\x40" * 3 + b"\x00"), "contradicts itself"),
        (short(b"\x80\x80\x20" + b"\x01" * (1 << 19) + b"\x80\x08" + b"\x00" * 1024), "characters"),
    ],
)
def test_bytes_that_are_no_cut_are_rejected(held: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        loaded(held)


@pytest.mark.parametrize("name", ["\udcff", "0/" * 70 + "x", "\u0663", "", "a\n"])
def test_inputs_of_any_name_are_stored(name: str) -> None:
    cut = {f"{name}/{number}": number for number in range(ENTRIES_AS_THEY_ARE + 1)}
    assert loaded(stored(cut)) == cut


def test_a_text_that_was_cut_short_is_rejected() -> None:
    text = stored(of_stages(8, 8))
    assert isinstance(text, str)
    for end in range(2, len(text)):
        with pytest.raises(ValueError, match="cannot be read"):
            loaded(text[:end])


def test_the_documents_reader_reads_it() -> None:
    text = (Path(__file__).parents[2] / "docs" / "stages.md").read_text()
    names: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[-1], names)

    for cut in (of_stages(8, 3, 32, behind=300), of_stages(40), of_stages(12, 4, source="a/b")):
        assert names["cut_of"](stored(cut)) == cut
