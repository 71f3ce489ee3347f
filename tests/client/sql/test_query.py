"""SQL by somebody who is trusted with the tables, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from ripple.client.sql.query import query
from ripple.client.sql.tables_read import mentioned, reads_others
from ripple.core.errors import InputError, LimitError

TABLE = pa.table({"symbol": ["A", "B"], "n": [1, 2]})


def test_one_statement_is_answered() -> None:
    found = query('SELECT symbol FROM "out" WHERE n > 1', {"out": TABLE})
    assert found.to_pylist() == [{"symbol": "B"}]


def test_question_marks_get_values_or_nulls() -> None:
    sql = "SELECT symbol FROM out WHERE n > ?"
    assert query(sql, {"out": TABLE}, parameters=[1]).to_pylist() == [{"symbol": "B"}]
    assert query(sql, {"out": TABLE}, parameters=None).schema == pa.schema({"symbol": pa.string()})
    with pytest.raises(InputError, match="parameter"):
        query(sql, {"out": TABLE})


def test_unknown_output_is_named_without_names_of_the_database() -> None:
    with pytest.raises(InputError, match="no output outt: ripple query --list"):
        query("SELECT * FROM outt", {"out": TABLE})


def test_name_with_a_hyphen_gets_a_hint_at_its_quotes() -> None:
    with pytest.raises(InputError, match="is put in double quotes"):
        query("SELECT * FROM out-1m", {"out-1m": TABLE})
    assert query('SELECT n FROM "out-1m"', {"out-1m": TABLE}).num_rows == TABLE.num_rows


def test_a_path_without_quotes_gets_a_hint_at_them() -> None:
    table = pa.table({"actor.login": ["ada"]})
    with pytest.raises(InputError, match=r'put in double quotes: SELECT "actor.login"'):
        query("SELECT actor.login FROM out", {"out": table})
    with pytest.raises(InputError, match=r'"act" not found'):
        query("SELECT act.login FROM out", {"out": table})
    assert query('SELECT "actor.login" FROM out', {"out": table}) == table


def test_listing_outputs_in_sql_names_the_command() -> None:
    for sql in ("SHOW TABLES", " show all\ttables;"):
        with pytest.raises(InputError, match="ripple query --list"):
            query(sql, {})
    (first, *_) = query("SHOW out", {"out": TABLE}).to_pylist()
    assert first["column_name"] == "symbol"


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("FROM out", ["out"]),
        ("FROM OUT", ["out"]),
        ('FROM "oUt", by_class', ["out", "By_Class"]),
        ("FROM outs", []),
        ("FROM Total", ["Total"]),
        ("FROM total, Total", ["total", "Total"]),
        ("FROM TOTAL", ["total", "Total"]),
        ("FROM out WHERE x = 'total' AND By_Class.total > 1", ["out"]),
        ("SELECT total FROM temp.main.out", ["out"]),
        (
            "WITH one AS (FROM out WHERE n > ?) FROM one JOIN by_class USING (total)",
            ["out", "By_Class"],
        ),
        ("DESCRIBE out", ["out"]),
        ("EXPLAIN ANALYZE FROM out", ["out"]),
        ("PIVOT out ON n USING sum(n)", ["out"]),
        ("FROM query_table('out')", ["out"]),
        ("SELECT 1 FROM range(1) total", []),
    ],
)
def test_outputs_are_mentioned_in_any_case(sql: str, found: list[str]) -> None:
    assert mentioned(sql, iter(["out", "By_Class", "total", "Total"])) == found


@pytest.mark.parametrize(
    ("sql", "others"),
    [
        ("FROM fills", False),
        ("SELECT 1", False),
        ("WITH one AS (FROM fills) FROM One JOIN Fills USING (n)", False),
        ("FROM (WITH one AS (FROM fills) FROM one) AS two", False),
        ("SELECT at FROM fills", False),  # a reserved word: there is an error to tell
        ("FROM fills JOIN bars USING (n)", True),
        ("WITH one AS (FROM bars) FROM one", True),
        ("PIVOT fills ON n USING sum(n)", True),
        ("FROM query_table('bars')", True),
    ],
)
def test_whether_a_statement_reads_other_tables(sql: str, others: bool) -> None:
    assert reads_others(sql, ["fills"]) == others


def test_a_name_with_a_dot_is_to_be_quoted() -> None:
    assert mentioned('FROM "a.b"', ["a.b", "b"]) == ["a.b"]
    with pytest.raises(InputError, match=r'A\.b has a dot: quote it, as "A\.b"'):
        mentioned("SELECT 1 FROM a.b", ["A.b", "b"])


def test_enumerations_come_as_their_texts() -> None:
    found = query("SELECT ['a'::ENUM('a', 'b')] AS many, {'x': 'b'::ENUM('b')} AS one", {})
    assert found.to_pylist() == [{"many": ["a"], "one": {"x": "b"}}]
    assert found.schema.types == [
        pa.list_(pa.field("l", pa.string())),
        pa.struct({"x": pa.string()}),
    ]


def test_outputs_that_sql_takes_for_one_another_are_refused_together() -> None:
    assert query("SELECT n FROM OUT WHERE symbol = 'A'", {"out": TABLE}).to_pylist() == [{"n": 1}]
    with pytest.raises(InputError, match="the outputs total and Total differ only by case"):
        query("FROM total", {"total": TABLE, "Total": TABLE})


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM '{file}'",
        "COPY (SELECT 1) TO '{file}.csv'",
        "ATTACH '{file}.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SELECT getenv('HOME')",
        "SET enable_external_access = true",
        "SELECT * FROM TABLE",
        "SELECT 1; SELECT 2",
        "CREATE TABLE t AS SELECT 1",
        "PRAGMA database_list",
        "",
    ],
)
def test_nothing_else_is_reached(sql: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("a\n1\n")
    with pytest.raises(InputError):
        query(sql.format(file=file), {"out": TABLE})
    assert os.listdir(tmp_path) == ["secret"]


def test_memory_and_time_are_limited() -> None:
    many = "SELECT count(*) FROM range(100000000000) a, range(1000000) b"
    with pytest.raises(TimeoutError, match=r"within 0\.3 s"):
        query(many, {}, timeout_s=0.3)
    with pytest.raises(LimitError, match=r"more than the 16 MiB .* \(ripple query --memory, "):
        query("SELECT list(range) FROM range(50000000)", {}, memory_mib=16)
