"""CSV with other delimiters, numbers and missing values than ours."""

from __future__ import annotations

import datetime as dt
import decimal
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pytest

import ripple as rp
from ripple.connectors import locate
from ripple.connectors.connector import Reading
from ripple.connectors.files.csv import parser
from ripple.connectors.files.csv.dialect import parsed, without_header
from ripple.connectors.files.csv.source import open_source
from ripple.connectors.record_shape import RecordShape
from ripple.core.errors import InputError, OutputError
from ripple.model.records import schema_of


@rp.record
class Row:
    text: str
    price: float
    n: int | None
    ok: bool | None
    note: str | None


SHAPE = RecordShape(schema_of(Row))


def read(path: Path, options: str) -> tuple[list[tuple[object, ...]], list[tuple[int | None, str]]]:
    source = open_source(f"{path}{options}", Reading("rows", SHAPE, 7))
    batches = list(source.batches())
    rows = [tuple(row.values()) for batch in batches for row in batch.records.to_pylist()]
    return rows, [(bad.line_number, bad.reason) for batch in batches for bad in batch.rejected]


@pytest.mark.parametrize("delimiter", [";", "\t", "|", "^"])
@pytest.mark.parametrize("way", ["wide", "vectors", "words", "careful"])
def test_any_delimiter_divides_as_a_comma_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delimiter: str, way: str
) -> None:
    monkeypatch.setattr(parser, "WAY", way)
    rng = random.Random(f"{delimiter} {way}")
    fields = (
        ["a", "long text of many letters, or more", '"in; quotes"', "", "é", "x,y"],
        ["1.5", "-3", "1e300", "x", " 2.25 ", "", "12345678.123456789"],
        ["1", "-9223372036854775808", "", "9223372036854775808", "1.0", " 7 "],
        ["true", "0", "", "maybe"],
        ["", '""', "note"],
    )
    lines = [[rng.choice(column) for column in fields] for _ in range(300)]
    lines += [["a", "1", "2", "true", "n"]] * 200 + [["a"], ["a", "1", "2", "1", "n", "more"]]
    rng.shuffle(lines)

    def written(line: Sequence[str], by: str) -> str:
        return by.join(
            f'"{field}"' if by in field and '"' not in field else field for field in line
        )

    ours, theirs = tmp_path / "ours.csv", tmp_path / "theirs.csv"
    ours.write_text("".join(f"{written(line, ',')}\n" for line in lines))
    theirs.write_text("".join(f"{written(line, delimiter)}\r\n" for line in lines))
    assert read(theirs, f"?delimiter={delimiter}") == read(ours, "")
    assert len(read(ours, "")[1]) > 100


def test_numbers_and_missing_values_of_another_country(tmp_path: Path) -> None:
    file = tmp_path / "eu.csv"
    good = [
        ("a;1.234,5;1.000;true;x,y", ("a", 1234.5, 1000, True, "x,y")),
        ("b; -1,25 ;NA;;-", ("b", -1.25, None, None, None)),
        ('"NA";"2,5";7;NA;"NA"', ("NA", 2.5, 7, None, "NA")),
        ("c;1,5e3;-1.234.567;1;", ("c", 1500.0, -1234567, True, None)),
        ("d;999;12;0;NAN", ("d", 999.0, 12, False, "NAN")),
    ]
    bad = [
        ("e;1.5;1;1;", "price is not a number"),
        ("f;12.34,5;1;1;", "price is not a number"),
        ("f;1,234.5;1;1;", "price is not a number"),
        ("f;1234.567;1;1;", "price is not a number"),
        ("f;.123;1;1;", "price is not a number"),
        ("f;0.123;1;1;", "price is not a number"),
        ("f;-01.234,5;1;1;", "price is not a number"),
        ("g;NA;1;1;", "price is empty"),
        ("-;1;1;1;", "text is empty"),
        ("h;1;1.0000;1;", "n is not an integer"),
        (f"i;{'1' * 401};1;1;", "price is not a number"),
    ]
    file.write_text("".join(f"{line}\n" for line, _ in [*good, *bad]))
    rows, refused = read(file, "?delimiter=;&decimal=,&thousands=.&null=NA&null=-")
    assert rows == [row for _, row in good]
    assert [reason for _, reason in refused] == [reason for _, reason in bad]


@rp.record
class Priced:
    price: Annotated[decimal.Decimal, rp.Decimal(8, 2)]
    fee: Annotated[decimal.Decimal, rp.Decimal(4, 2)] | None
    day: dt.date | None


def test_decimals_are_written_as_the_dialect_has_numbers(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    good = ["1,5", "-1.234,56", '"1.234,5"', "1234", ",5", "1,5e2"]
    wrong = ["1.5", "0.123", "1,2,3", "1 000", "1,234", ""]
    lines = [*(f"{one};NA;" for one in good), *(f"{one};;" for one in wrong), "1;2,5;2026-01-31"]
    file.write_text("".join(f"{line}\n" for line in lines))
    place = f"csv:{file}?delimiter=;&decimal=,&thousands=.&null=NA"
    prices = rp.Pipeline("prices").source("prices", Priced).sink("out")
    with pytest.warns(UserWarning, match="6 rejected"):
        found = rp.collect(prices, place)
    rows, bad = found.rows(), found.rejected.to_pylist()
    expected = ["1.50", "-1234.56", "1234.50", "1234.00", "0.50", "150.00", "1.00"]
    assert [str(row["price"]) for row in rows] == expected
    assert [row["fee"] for row in rows] == [None] * 6 + [decimal.Decimal("2.50")]
    assert rows[-1]["day"] == dt.date(2026, 1, 31)
    assert [one["offset"] for one in bad] == [*range(6, 12)]
    reason = "price is no decimal of at most 6 digits before the point and 2 after"
    foreign = [(line, "price is not a number") for line in range(7, 10)]
    assert [(one["line_number"], one["reason"]) for one in bad] == [*foreign, *[(None, reason)] * 3]


def test_name_and_header_of_a_table_of_tabs(tmp_path: Path) -> None:
    file = tmp_path / "t.tsv"
    file.write_text("price\ttext\tn\n# no record\n1.5\ta,b\t\n\t\t\n")
    rows, refused = read(file, "?header&comments=anywhere")
    assert rows == [("a,b", 1.5, None, None, None)]
    assert refused == [(4, "price is empty")]


def test_outputs_have_a_header_unless_the_uri_says_no(tmp_path: Path) -> None:
    file, out = tmp_path / "t.csv", tmp_path / "o.csv"
    file.write_text("a,1.5,,,\n")
    rows = rp.Pipeline("rows").source("rows", Row).sink("out")
    rp.run(rows, source=file, sink=out)
    assert out.read_text() == "text,price,n,ok,note\na,1.5,,,\n"
    rp.run(rows, source=f"csv:{out}?header", sink=f"csv:{out}.2.csv?header=no")
    assert Path(f"{out}.2.csv").read_text() == "a,1.5,,,\n"
    rp.run(rows, source=file, sink=f"{out}?header=no")
    assert out.read_text() == "a,1.5,,,\n"
    with pytest.raises(OutputError, match="there is no option 'heading' of CSV"):
        rp.run(rows, source=file, sink=f"{out}?heading=no")
    with pytest.raises(OutputError, match=r"cannot tell how to write '.*\.jsonl\?header=no'"):
        rp.run(rows, source=file, sink=f"{tmp_path / 'o.jsonl'}?header=no")
    with pytest.raises(OutputError, match="of the options it takes header"):
        rp.run(rows, source=file, sink=f"csv:{out}?delimiter=;")
    with pytest.raises(OutputError, match="it is the run's own source"):
        rp.run(rows, source=f"csv:{out}?header", sink=str(out))


def test_files_without_rows_have_a_header_too(tmp_path: Path) -> None:
    source, rows = tmp_path / "t.csv", rp.Pipeline("rows").source("rows", Row).sink("out")
    source.touch()
    for place, wanted in {"a.csv": "text,price,n,ok,note\n", "b.csv?header=no": ""}.items():
        out, state = tmp_path / place.partition("?")[0], tmp_path / place[0]
        rp.run(rows, source=f"files:{source}", sink=str(tmp_path / place))
        assert out.read_text() == wanted
        out.unlink()
        for _ in ("begun", "resumed"):
            rp.run(rows, source=f"files:{source}", sink=str(tmp_path / place),
                   checkpoint_dir=state)  # fmt: skip
            assert out.read_text() == wanted


def test_an_address_says_once_whether_there_is_a_header() -> None:
    assert without_header("o.csv") == "o.csv?header=no"
    assert without_header("o.csv?header") == "o.csv?header"
    assert without_header("a?b.csv") == "a?b.csv?header=no"


def test_a_sink_has_no_header_by_any_of_its_uris() -> None:
    for place in ("o.csv", "csv:o.csv", "csv:o.txt", "./a:b.csv", "s3://bucket/o.csv"):
        uri = locate.without_header(place)
        assert uri == f"csv:{place.removeprefix('csv:')}?header=no"
        assert locate.without_header(uri) == uri
    for other in ("-", "csv:-", "o.jsonl", "o.parquet", "s3://bucket/o.parquet"):
        assert locate.without_header(other) == other
    assert locate.without_header("o.csv?header") == "csv:o.csv?header"


def test_files_of_a_folder_have_the_options_of_its_uri(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text(f"{name};1,5;;;\n")
    rows = rp.Pipeline("rows").source("rows", Row).sink("out")
    for place in (f"{tmp_path}?delimiter=;&decimal=,", f"{tmp_path}/*.csv?delimiter=;&decimal=,"):
        written: list[dict[str, object]] = []
        rp.run(rows, source=place, sink=written)
        assert [(row["text"], row["price"]) for row in written] == [("a", 1.5), ("b", 1.5)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("separator=;", "there is no option 'separator' of CSV: there are delimiter, decimal"),
        ("delimiter=xy", "the option delimiter is one of , ; .* or tab, not 'xy'"),
        ("delimiter=.", "the option delimiter is one of"),
        ("decimal=;", "the option decimal is . or ,, not ';'"),
        ("thousands=12", "the option thousands is one of"),
        ("null", "the option null needs a value, as in csv:FILE"),
        ("header=maybe", "the option header is yes or no, not 'maybe'"),
        ("comments=x", "the option comments is one of ahead, anywhere, none"),
    ],
)
def test_wrong_option_is_told(options: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parsed(f"t.csv?header=no&{options}")


def test_characters_that_cannot_be_told_apart_are_refused() -> None:
    path, options = parsed("t.csv?decimal=,&header")
    with pytest.raises(InputError, match="delimiter, decimal and thousands are ',', ','"):
        options.dialect(path)


def test_misspelled_option_of_a_file_is_told_and_is_no_pattern(tmp_path: Path) -> None:
    (tmp_path / "t.csv").touch()
    with pytest.raises(InputError, match="there is no option 'headr' of CSV"):
        parsed(f"{tmp_path}/t.csv?headr")
    assert parsed(f"{tmp_path}/u.csv?headr")[0] == f"{tmp_path}/u.csv?headr"


def test_file_of_the_whole_name_has_no_options(tmp_path: Path) -> None:
    file = tmp_path / "t.csv?header"
    file.write_text("text,1.5,,,\n")
    assert read(file, "")[0] == [("text", 1.5, None, None, None)]
