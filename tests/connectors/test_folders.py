"""Folders, patterns and lists of files, read as one input."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import os
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ripple as rp
from ripple.connectors.files.folder import listing
from ripple.connectors.files.folder.listing import DataFile, files_at
from ripple.core.errors import InputError, OutputError
from tests.cli.processes import ripple


@rp.record
class Seen:
    who: str
    n: int
    day: str | None = None


SEEN = rp.Pipeline("seen").source("seen", Seen).sink("rows")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(path: str, text: str) -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)
    return path


def rows(source: object, **options: object) -> list[dict[str, object]]:
    rp.run(SEEN, source=source, sink="out.jsonl", **options)  # type: ignore[arg-type]
    return [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("batch_rows", [1, 3, 1000])
def test_files_are_read_in_the_order_of_their_names(place: Path, batch_rows: int) -> None:
    put("data/b/1.csv", "ann,4,\n")
    put("data/a/2.csv", "ann,2,\nann,3,\n")
    put("data/a/1.csv", "ann,1,\n")
    put("data/a/_SUCCESS", "")
    put("data/a/.1.csv.crc", "?")
    os.symlink("..", "data/a/up")
    for source in ("data", "files:data", "data/*/*.csv", Path("data"), "data/**/*.csv"):
        assert [row["n"] for row in rows(source, batch_rows=batch_rows)] == [1, 2, 3, 4]
    assert [row["n"] for row in rows(["data/b/1.csv", Path("data/a/1.csv")])] == [4, 1]


def test_dead_letter_names_file_and_line_and_offsets_go_on(place: Path) -> None:
    put("data/1.csv", "ann,1,\n\nbob,x,\nann,2,\n")
    put("data/2.csv", "# about it\nann,3,\ncid,y,\n")
    report = rp.run(SEEN, source="data", sink="o.csv", dead_letters="bad.jsonl", batch_rows=2)
    letters = [json.loads(line) for line in Path("bad.jsonl").read_text().splitlines()]
    assert [(one["file"], one["line_number"], one["offset"]) for one in letters] == [
        ("data/1.csv", 3, 1),
        ("data/2.csv", 3, 4),
    ]
    assert (report.consumed, report.applied, report.cut) == (5, 3, {"seen": 5})


@pytest.mark.filterwarnings("ignore::ripple.LostRecordsWarning")
def test_letters_of_forms_and_steps_name_their_files(place: Path) -> None:
    @rp.record
    class Day:
        n: int
        day: dt.date

    def doubled(one: Day) -> Day:
        return Day(n=12 // one.n, day=one.day)

    put("data/1.csv", "1,2026-01-31\n0,2026-01-31\n")
    put("data/2.csv", "")
    put("data/3.csv", "2,today\n3,2026-01-31\n0,2026-01-31\n")
    days = rp.Pipeline("days").source("days", Day).map("doubled", doubled, into=Day).sink("rows")
    for batch_rows in (1, 1000):
        found = rp.collect(days, "data", batch_rows=batch_rows).rejected.to_pylist()
        assert sorted((one["file"], one["offset"]) for one in found) == [
            ("data/1.csv", 1),
            ("data/3.csv", 2),
            ("data/3.csv", 4),
        ]


def test_folders_name_fields(place: Path) -> None:
    put("data/day=2026-01-31/who=a%20b/1.csv", "1\n2\n")
    put("data/day=__HIVE_DEFAULT_PARTITION__/who=cid/1.csv", "5\n")
    assert [(row["who"], row["n"], row["day"]) for row in rows("data")] == [
        ("a b", 1, "2026-01-31"),
        ("a b", 2, "2026-01-31"),
        ("cid", 5, None),
    ]
    put("other/n=x/1.csv", "ann\n")
    with pytest.raises(InputError, match=r"other/n=x/1\.csv: n is not an integer, by the name of"):
        rows("other")
    put("third/who=__HIVE_DEFAULT_PARTITION__/1.csv", "1\n")
    with pytest.raises(InputError, match="who is empty, by the name of its folder"):
        rows("third")


def test_folders_name_dates_of_files_with_columns_of_times_and_decimals(place: Path) -> None:
    @rp.record
    class Fill:
        day: dt.date
        at: dt.datetime
        price: Annotated[decimal.Decimal, rp.Decimal(8, 2)]

    at, price = dt.datetime(2026, 1, 31, 9, tzinfo=dt.UTC), decimal.Decimal("1.50")
    Path("data/day=2026-01-31").mkdir(parents=True)
    table = pa.table({"at": [at], "price": pa.array([price], pa.decimal128(20, 4))})
    pq.write_table(table, "data/day=2026-01-31/1.parquet")
    found = rp.collect(rp.Pipeline("fills").source("fills", Fill).sink("rows"), "data")
    assert found.rows() == [{"day": dt.date(2026, 1, 31), "at": at, "price": price}]


def test_folders_on_the_way_to_the_files_name_fields_too(place: Path) -> None:
    file = put("data/day=1/who=a/1.csv", "1\n")
    for source in ("data/day=1", "data/day=1/who=*/1.csv", "data/day=1/who=a/", [file]):
        assert rows(source) == [{"who": "a", "n": 1, "day": "1"}]


def test_a_letter_of_a_file_whose_name_is_no_text_is_text(place: Path) -> None:
    put(os.fsdecode(b"data/\xff.csv"), "ann,x,\nann,1,\n")
    rp.run(SEEN, source="data", sink="o.csv", dead_letters="bad.jsonl")
    assert json.loads(Path("bad.jsonl").read_text())["file"] == r"data/\xff.csv"


def test_each_format_and_header_is_read(place: Path) -> None:
    os.mkdir("parquet")
    for at in range(2):
        pq.write_table(pa.table({"who": ["ann"], "n": [at + 1]}), f"parquet/{at}.parquet")
        put(f"jsonl/{at}.jsonl", f'{{"who": "ann", "n": {at + 1}}}\n')
        put(f"header/{at}.csv", f"n,who\n{at + 1},ann\n")
    for folder in ("parquet", "jsonl", "header"):
        assert [row["n"] for row in rows(folder, header=folder == "header")] == [1, 2]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("none/", "there is no folder 'none/'"),
        ("files:none", "cannot read the files at none: there are none"),
        ("parquet?header", "parquet/1.parquet is not CSV, and does not take 'header'"),
        ("empty", "there are no files at empty"),
        ("*.parquet", r"there are no files at \*.parquet"),
        ("mixed", "mixed/a.csv is read as csv, and mixed/b.jsonl as jsonl"),
        ("topic", "if it is an event log, write log:topic"),
        ("link", "cannot read link/1.csv: it is a link to a file that is not there"),
        ("third", r"third/who=%FF/1.csv: the name of its folder is not valid UTF-8"),
        ("fourth", r"fourth/n=1/n=2/1.csv: two of its folders name 'n'"),
        (["one.csv", "none.csv"], "cannot read none.csv: No such file or directory"),
    ],
)
def test_what_cannot_be_read_is_told(place: Path, source: object, said: str) -> None:
    put("one.csv", "ann,1,\n")
    put("mixed/a.csv", "")
    put("mixed/b.jsonl", "")
    os.mkdir("empty")
    put("topic/topic", "")
    os.mkdir("link")
    os.symlink("nowhere", "link/1.csv")
    put("third/who=%FF/1.csv", "")
    put("fourth/n=1/n=2/1.csv", "")
    put("parquet/1.parquet", "")
    with pytest.raises(InputError, match=said):
        rows(source)
    assert not os.path.exists("out.jsonl")


def test_number_of_files_is_bounded(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "FILES_MAX", 3)
    put("data/1.csv", "")
    assert files_at("data") == [DataFile("data/1.csv", ())]
    for name in ("folder/2.csv", "folder/3.csv"):
        put(f"data/{name}", "")
    with pytest.raises(InputError, match="data has over 3 files and folders"):
        files_at("data")


@pytest.mark.parametrize("source", ["*.csv", "**/*.csv", "o*.csv", "{}/o.*"])
def test_own_outputs_are_not_read_by_a_later_run(place: Path, source: str) -> None:
    put("old.csv", "ann,1,\n")
    put("o.csv", "")
    with pytest.raises(OutputError, match=r"cannot write o\.csv: the run's own source, .*, reads"):
        rp.run(SEEN, source=source.format(place), sink="o.csv")
    rp.run(SEEN, source="ol*.csv", sink="o.csv")
    assert Path("o.csv").read_text() == "who,n,day\nann,1,\n"


def test_command_tells_of_a_pattern_without_quotes(place: Path) -> None:
    put("p.py", "")
    put("1.csv", "")
    said = ripple("run", "p.py", "--source", "0.csv", place / "1.csv")
    assert (said.code, "1.csv: a pattern of files is put in quotes" in said.err) == (1, True)


def test_a_pattern_behind_the_scheme_of_a_format_gets_a_hint(tmp_path: Path) -> None:
    rows = rp.Pipeline("rows").source("rows", Seen).sink("out")
    with pytest.raises(rp.InputError, match=r": a pattern is files:.*\*\.csv$"):
        rp.run(rows, source=f"csv:{tmp_path}/*.csv", sink=[])
