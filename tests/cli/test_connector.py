"""``ripple connector``: what connectors say of themselves, and a new one that is tried."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ripple.connectors.connector import Connector
from ripple.connectors.registry import own
from ripple.connectors.settings import schema_of_settings, setting, settings_from
from ripple.core.errors import ConnectorError
from ripple.model.schema.types import Field, Int64, Option, Schema, String
from ripple.storage.log import Topic
from ripple.world import LiveDisk
from tests.cli.processes import RIPPLE, ROOT, Ended, run


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ripple(*arguments: str) -> Ended:
    """Run the command in the test's folder."""
    return run(RIPPLE, *arguments, folder=Path.cwd())


def test_all_connectors_are_listed_with_their_promises() -> None:
    rows = json.loads(ripple("connector", "list", "--format", "json").out)["connectors"]
    assert [row["scheme"] for row in rows][: len(own())] == [*own()]
    by_scheme = {row["scheme"]: row for row in rows}
    assert set(by_scheme["csv"]["uses"]) == {"source", "sink", "continued_sink"}
    text = ripple("connector", "list").out
    assert f"  continued sink    {own()['log'].continued_sink.promise}\n" in text  # type: ignore[union-attr]


@pytest.mark.parametrize("scheme", own())
def test_every_spec_is_a_schema_of_its_settings(scheme: str) -> None:
    spec = json.loads(ripple("connector", "spec", scheme).out)
    assert spec["properties"]["place"]["pattern"] == f"^{scheme}:"
    assert spec["required"][0] == "place"


def test_secrets_are_marked_in_a_spec() -> None:
    spec = json.loads(ripple("connector", "spec", "postgres").out)
    secrets = {name for name, one in spec["properties"].items() if one.get("x-secret")}
    assert secrets == {"password"}
    assert spec["properties"]["password"]["writeOnly"]
    assert spec["properties"]["host"]["x-environment"] == "PGHOST"


@dataclass(frozen=True)
class Settings:
    token: str = setting("of the feed", variable="FEED_TOKEN", secret=True)
    depth: int = setting("how many levels", variable="FEED_DEPTH", default=10)
    is_test: bool | None = setting("whether it is a test", variable="FEED_TEST", default=None)


def test_settings_come_from_the_environment_and_secrets_are_shown_nowhere() -> None:
    found = settings_from(
        "feed", Settings, {"FEED_TOKEN": "abc", "FEED_DEPTH": "7", "FEED_TEST": "1"}
    )
    assert found == Settings("abc", 7, True)
    assert "abc" not in repr(found)
    assert schema_of_settings(Connector(scheme="feed", form="feed:"), Settings)["required"] == [
        "place",
        "token",
    ]
    with pytest.raises(ConnectorError, match="feed: FEED_TOKEN is not set: of the feed"):
        settings_from("feed", Settings, {})
    with pytest.raises(ConnectorError, match="feed: FEED_DEPTH: 'x' is no integer"):
        settings_from("feed", Settings, {"FEED_TOKEN": "abc", "FEED_DEPTH": "x"})

    @dataclass(frozen=True)
    class Wrong:
        names: list = setting("several", variable="NAMES")  # type: ignore[type-arg]  # noqa: RUF009 - it is one

    with pytest.raises(ConnectorError, match=r"Wrong\.names is no setting"):
        schema_of_settings(Connector(scheme="feed", form="feed:"), Wrong)


def test_check_says_what_is_there_and_what_is_wrong(folder: Path) -> None:
    (folder / "a.csv").write_text("1\n")
    pq.write_table(pa.table({"n": [1, 2]}), "a.parquet")
    assert (
        ripple("connector", "check", "csv:a.csv").out
        == "csv:a.csv: a file of 2 bytes that can be read\n"
    )
    assert "not there yet" in ripple("connector", "check", "csv:b.csv").out
    found = json.loads(ripple("connector", "check", "parquet:a.parquet", "--format", "json").out)
    assert found["found"] == "2 rows in 1 groups, 1 columns"
    for place, said in {
        "log:no/topic": "cannot read log:no/topic",
        "parquet:none": "cannot read none: No such file",
        "parquet:a.csv": "cannot read a.csv: ",
        "csv:no/b.csv": "cannot be made in no",
        "kafka:": "cannot tell which topic 'kafka:' is",
        "kafka:127.0.0.1:1/trades": "cannot read kafka:127.0.0.1:1/trades: cannot reach Kafka: ",
        "a.csv": "begin with its scheme, as in csv:a.csv",
        "cvs:a": "no connector 'cvs'; there are csv, ",
    }.items():
        wrong = ripple("connector", "check", place)
        nobody = "127.0.0.1:1/" in place
        assert (wrong.code, wrong.out) == (2 if nobody else 1, "")
        assert said in wrong.err


def test_discover_lists_what_can_be_read(folder: Path) -> None:
    fields = (Field("symbol", String()), Field("size", Option(Int64())))
    Topic.create(
        LiveDisk(folder / "data"), "trades", Schema("trade", fields), partitions=4, key=("symbol",)
    )
    told = json.loads(ripple("connector", "discover", "log:data", "--format", "json").out)
    rows = told["found"]
    assert rows == [
        {
            "place": "log:data/trades",
            "columns": {"symbol": "string", "size": "int64 or none"},
            "partitions": 4,
            "key": ["symbol"],
            "replayable": True,
        }
    ]
    text = "log:data/trades: 4 partitions by symbol\n  symbol: string\n  size: int64 or none\n"
    assert ripple("connector", "discover", "log:data").out == text
    assert ripple("connector", "discover", "log:data/trades").out == text
    wrong = ripple("connector", "discover", "csv:a")
    assert "csv: connector cannot discover streams" in wrong.err


def test_new_package_passes_its_own_tests_and_is_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ripple("connector", "new", "quotes")
    assert made.code == 0, made.err
    package = folder / "ripple-quotes"
    assert len((package / "ripple_quotes.py").read_text().splitlines()) < 65
    monkeypatch.setenv("PYTHONPATH", f"{package}:{ROOT}")
    alone = "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1"
    tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(package)]
    tried = run(["env", "-C", str(package), alone, sys.executable, *tests], "tests")
    assert tried.code == 0, tried.out
    assert "passed" in tried.out
    about = package / "ripple_quotes-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: ripple-quotes\nVersion: 0.1.0\n")
    (about / "entry_points.txt").write_text(
        "[ripple.connectors]\nquotes = ripple_quotes:CONNECTOR\n"
    )
    found = run(RIPPLE, "connector", "check", "quotes:nothing")
    monkeypatch.delenv("PYTHONPATH")
    assert found.out == "quotes:nothing: not there yet\n"
    again = ripple("connector", "new", "quotes")
    assert "ripple-quotes exists" in again.err
    assert "invalid name" in ripple("connector", "new", "No-Name").err
    assert "a connector 'csv' exists" in ripple("connector", "new", "csv").err
