"""Which connector a place belongs to, and connectors that other packages bring."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pyarrow.parquet as pq
import pytest

import ripple as rp
from ripple.connectors import installed, registry
from ripple.connectors.contract import Commit, Sink
from ripple.connectors.files.csv.source import CsvSource
from ripple.connectors.identity import check_places
from ripple.connectors.locate import open_inputs, open_sink, open_source
from ripple.connectors.memory import MemorySink
from ripple.connectors.registry import USES, UseName, find, own
from ripple.connectors.target import open_target
from ripple.core.errors import ConnectorError, InputError, OutputError
from ripple.engine.machine import Engine
from ripple.model.batch import Batch
from ripple.storage.log import Topic
from ripple.task.one_shot import entries
from ripple.world import LiveDisk
from tests.cli.processes import RIPPLE, ripple, run, shell


@rp.record(version=1)
class Level:
    name: str
    level: float


PLAN = (
    rp.Pipeline("levels")
    .source("levels", Level)
    .partition("by", key="name")
    .fold("top", top=rp.max("level"))
    .sink("out")
    .plan()
)
PIPELINE = """
import ripple as rp

@rp.record
class Level:
    name: str
    level: float

pipeline = (
    rp.Pipeline("levels")
    .source("levels", Level)
    .partition("by", key="name")
    .fold("top", top=rp.max("level"))
    .sink("out")
)
"""
CSV, JSON = "a,1.5\nb,2.0\n", '{"name": "a", "level": 1.5}\n{"name": "b", "level": 2.0}\n'
ROWS = [{"name": "a", "level": 1.5}, {"name": "b", "level": 2.0}]
PLAIN = "a,1.5\nb,2.0\n"
NAMED = f"name,top\n{PLAIN}"
MARKED = '{"op":"set","name":"a","top":1.5}\n{"op":"set","name":"b","top":2.0}\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows_at(place: str) -> list[Any]:
    source = open_source(place, PLAN.source.schema, name="levels")
    found = [batch for batch in entries(source, 1000) if isinstance(batch, Batch)]
    return [row for batch in found for row in batch.records.to_pylist()]


def write(sink: Sink) -> None:
    engine = Engine(PLAN)
    (batch,) = entries(open_source(ROWS, PLAN.source.schema, name="levels"), 1000)
    assert isinstance(batch, Batch)
    engine.apply("levels", batch.records, batch.next_offset)
    changes = engine.stabilize()
    reached = Commit(changes.cut, engine.digest)
    sink.write(changes.outputs["out"], reached)
    sink.commit(reached)
    sink.close()


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("scheme", own())
def test_functions_of_connectors_exist(scheme: str, use: registry.UseName) -> None:
    way = getattr(own()[scheme], use)
    if way is not None:
        assert callable(resolve_name(way.opens))
        assert way.promise


class TestSchemes:
    """What stands before the colon says the format."""

    @pytest.mark.parametrize(
        ("scheme", "text"), [("csv", CSV), ("jsonl", JSON)], ids=["csv", "jsonl"]
    )
    @pytest.mark.parametrize("name", ["levels.txt", "levels", "levels.parquet", "./a:b", "a:b.txt"])
    def test_of_a_source(self, folder: Path, scheme: str, text: str, name: str) -> None:
        (folder / name).write_text(text)
        assert rows_at(f"{scheme}:{name}") == ROWS
        assert rows_at(f"{scheme}:{folder}/{name}") == ROWS

    @pytest.mark.parametrize("continues", [False, True])
    @pytest.mark.parametrize(
        ("scheme", "text"), [("csv", NAMED), ("jsonl", MARKED)], ids=["csv", "jsonl"]
    )
    def test_of_a_sink(self, folder: Path, scheme: str, text: str, continues: bool) -> None:
        write(open_sink(f"{scheme}:out.txt", PLAN, "out", continues=continues))
        assert (folder / "out.txt").read_text() == text
        assert (folder / "out.txt.cut").exists() == continues

    def test_of_parquet(self, folder: Path) -> None:
        rp.run(PLAN, source=ROWS, sink="parquet:out")
        assert pq.read_table(folder / "out")["top"].to_pylist() == [1.5, 2.0]
        (folder / "out").rename("levels.csv")
        with pytest.raises(rp.SchemaError, match=r"levels.csv has no column 'level'"):
            rows_at("parquet:levels.csv")

    def test_of_standard_input_and_output(self, folder: Path) -> None:
        pipeline = folder / "p.py"
        pipeline.write_text(PIPELINE)
        ended = shell(f"echo -n '{CSV}' | $ripple run {pipeline} --source csv:- --sink -")
        assert ended.out == PLAIN, ended.err
        for given, source, sink, shown in (
            (JSON, "jsonl:-", "csv:-", PLAIN),
            (CSV, "-", "jsonl:/dev/stdout", MARKED),
        ):
            ended = ripple("run", pipeline, "--source", source, "--sink", sink, given=given)
            assert ended.out == shown, ended.err
        (folder / "levels.txt").write_text(CSV)
        place = f"csv:{folder}/levels.txt"
        for sink in (place, f"jsonl:{folder}/./levels.txt"):
            ended = ripple("run", pipeline, "--source", place, "--sink", sink)
            assert ended.only_line.endswith("levels.txt: it is the run's own source")
        assert (folder / "levels.txt").read_text() == CSV

    def test_names_no_file(self) -> None:
        with pytest.raises(InputError, match=r"cannot tell how to read 'csv:'"):
            rows_at("csv:")
        with pytest.raises(OutputError, match=r"cannot tell how to write 'jsonl:'"):
            open_sink("jsonl:", PLAN, "out")

    def test_scheme_that_cannot_do_what_is_wanted_is_refused(self) -> None:
        words = r"cannot tell how to write 'synthetic:5': it must be a .csv, .jsonl or .parquet fi"
        with pytest.raises(OutputError, match=words):
            open_sink("synthetic:5", PLAN, "out")
        with pytest.raises(OutputError, match=r"'x\.txt' so that a restart continues it"):
            open_sink("x.txt", PLAN, "out", continues=True)
        with pytest.raises(
            InputError, match=r"can be read again, not 'csv:x': put .* log:DIR/TOPIC"
        ):
            open_inputs("csv:x", PLAN, 10, follow=False)
        with pytest.raises(InputError, match="'parquet:-' is a stream, and parquet needs a file"):
            rows_at("parquet:-")

    @pytest.mark.parametrize("continues", [False, True])
    @pytest.mark.parametrize("place", ["csv:out.csv.gz", "jsonl:out.zst"])
    def test_writes_nothing_that_would_be_read_as_compressed(
        self, folder: Path, place: str, continues: bool
    ) -> None:
        with pytest.raises(OutputError, match="would be read as compressed, and it is not"):
            open_sink(place, PLAN, "out", continues=continues)
        assert list(folder.iterdir()) == []

    def test_replaces_no_file_that_is_continued(self, folder: Path) -> None:
        write(open_sink("out.csv", PLAN, "out", continues=True))
        for place in ("csv:out.csv", "parquet:out.csv", "jsonl:./out.csv"):
            with pytest.raises(OutputError, match=r"out\.csv\.cut says that a pipeline continues"):
                open_sink(place, PLAN, "out")
        with pytest.raises(OutputError, match=r"out\.csv\.cut says that a pipeline continues"):
            rp.run(PLAN, source=ROWS, sink=MemorySink(), dead_letters="out.csv")
        assert (folder / "out.csv").read_text() == NAMED


class TestPaths:
    """What has no scheme is known by its name, or is a stream."""

    @pytest.mark.parametrize(
        "name", ["./a:b.csv", "d.d/a:b.csv", "a:b.csv", "2024-01-01T10:00.csv", "x.y+z-1:b.csv"]
    )
    def test_may_have_colons(self, folder: Path, name: str) -> None:
        (folder / "d.d").mkdir()
        (folder / name).write_text(CSV)
        assert rows_at(name) == ROWS
        rp.run(PLAN, source=ROWS, sink=name)
        assert (folder / name).read_text() == NAMED

    @pytest.mark.parametrize("name", ["a:b.csv", "csv:levels.csv", "log:levels.csv"])
    def test_path_objects_are_never_schemes(self, folder: Path, name: str) -> None:
        rp.run(PLAN, source=ROWS, sink=Path(name))
        assert (folder / name).read_text() == NAMED
        (folder / name).write_text(CSV)
        rp.run(PLAN, source=Path(name), sink=Path("n:out.csv"))
        assert (folder / "n:out.csv").read_text() == NAMED

    @pytest.mark.parametrize("use", USES)
    def test_path_like_an_unknown_scheme_is_refused_with_the_known_ones(
        self, use: registry.UseName
    ) -> None:
        *known, last = (each.scheme for each in own().values() if getattr(each, use))
        words = (
            rf"there is no file 'nope:x.csv' and no scheme 'nope': there are {', '.join(known)} "
            rf"and {last}; a path with a colon begins with ./ or /"
        )
        wanted = InputError if use.endswith("source") else OutputError
        with pytest.raises(wanted, match=words):
            find("nope:x.csv", use)
        assert find("./nope:x.csv", "sink").path == "./nope:x.csv"

    @pytest.mark.parametrize("scheme", ["https", "csv:https", "ws", "nope"])
    def test_no_refusal_shows_the_secrets_of_an_address(self, scheme: str) -> None:
        with pytest.raises(OutputError, match=r"host/out\.csv") as refused:
            open_sink(f"{scheme}://me:pass@host/out.csv?sig=secret", PLAN, "out", continues=False)
        assert not re.search("pass|secret", str(refused.value)), refused.value

    @pytest.mark.parametrize("name", ["pipe", "pipe.txt"])
    def test_of_pipes_are_csv(self, folder: Path, name: str) -> None:
        os.mkfifo(folder / name)
        reader = os.open(folder / name, os.O_RDONLY | os.O_NONBLOCK)
        for continues in (False, True):
            write(open_sink(name, PLAN, "out", continues=continues))
            assert os.read(reader, 1000).decode() == PLAIN
        os.close(reader)
        assert find(name, "source").connector.scheme == "csv"

    @pytest.mark.parametrize("name", ["pipe.jsonl", "pipe.ndjson"])
    def test_of_pipes_may_say_that_they_are_json(self, folder: Path, name: str) -> None:
        os.mkfifo(folder / name)
        assert {find(name, use).connector.scheme for use in USES if use != "continued_source"} == {
            "jsonl"
        }

    @pytest.mark.parametrize("name", ["levels", "levels.txt", ".csv", ".csv.gz", "levels.csv.xz"])
    def test_of_unknown_names_are_told(self, name: str) -> None:
        with pytest.raises(InputError, match="cannot tell how to read"):
            rows_at(name)
        with pytest.raises(OutputError, match="cannot tell how to write"):
            open_sink(name, PLAN, "out")

    @pytest.mark.parametrize("use", USES)
    def test_of_a_folder_are_told_how_to_name_a_log(self, folder: Path, use: UseName) -> None:
        (folder / "trades").mkdir()
        (folder / "trades" / "topic").touch()
        with pytest.raises((InputError, OutputError), match=r"'trades' is a folder: .* log:trades"):
            find("trades", use)

    def test_of_a_dash_are_standard_input_whatever_is_called_so(self, folder: Path) -> None:
        (folder / "-").write_text(CSV)
        (folder / "p.py").write_text(PIPELINE)
        ended = run(RIPPLE, "run", "p.py", "--source", "-", given="c,3\n", folder=folder)
        assert ended.out == "c,3.0\n", ended.err
        assert rows_at("csv:./-") == ROWS


LEVELS = f"""
from ripple.connectors.connector import Connector, Use
from ripple.connectors.contract import BasicSink
from ripple.connectors.memory import MemorySource

class Shout(BasicSink):
    def __init__(self, place, writing):
        self.place, self.names = place, [field.name for field in writing.output.fields]

    def write(self, changes, reached):
        for row in changes.to_pylist():
            print(self.place, *(row[name] for name in self.names), flush=True)

def read(place, reading):
    rows = {ROWS!r}[: int(place)]
    return MemorySource(rows, reading.shape, name=reading.name, batch_rows=reading.batch_rows)

def wrong(place, asked):
    return 7

CONNECTOR = Connector(
    scheme="levels",
    form="levels:N",
    source=Use("levels:read", "as many levels"),
    sink=Use("levels:Shout", "printed"),
    continued_sink=Use("levels:Shout", "printed again"),
)
"""


@pytest.fixture
def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return what installs a package into a folder of the module path, as installers leave it."""
    site = folder / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def install(
        package: str = "ripple-levels",
        code: str = LEVELS,
        *,
        module: str = "levels",
        scheme: str = "levels",
        value: str = "levels:CONNECTOR",
    ) -> None:
        monkeypatch.delitem(sys.modules, module, raising=False)
        (site / f"{module}.py").write_text(code)
        about = site / f"{package.replace('-', '_')}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[ripple.connectors]\n{scheme} = {value}\n")

    return install


class TestInstalled:
    """A package adds a scheme, and Ripple is not touched."""

    @pytest.mark.services
    def test_connector_is_used_by_the_commands(
        self, folder: Path, install: Callable[..., None]
    ) -> None:
        install()
        (folder / "p.py").write_text(PIPELINE)
        root = Path(rp.__file__).parents[1]
        command = ["env", f"PYTHONPATH={folder}/site:{root}", *RIPPLE]
        ended = run(
            command, "run", folder / "p.py", "--source", "levels:2", "--sink", "levels:so:loud"
        )
        assert ended.rows == ["so:loud a 1.5", "so:loud b 2.0"], ended.err
        told = run(command, "info").out
        assert re.search(
            r"^  levels +levels:N +source, sink, continued sink  \(ripple-levels 1.0\)$", told, re.M
        )
        refused = run(command, "run", folder / "p.py", "--source", "lovels:2")
        sources = [each.scheme for each in own().values() if each.source]
        known = f"there are {', '.join(sources)} and levels;"
        assert f"no scheme 'lovels': {known}" in refused.only_line

    def test_source_is_not_written_to(self, folder: Path, install: Callable[..., None]) -> None:
        install()
        (folder / "t.toml").write_text("")
        for source in ("levels:2", "through:t.toml,levels:2"):
            with pytest.raises(OutputError, match="cannot write levels:2: it is the run's own"):
                rp.run(PLAN, source=source, sink="levels:2")
            with pytest.raises(OutputError, match="cannot write levels:2: it is the run's own"):
                rp.run(PLAN, source={"levels": source}, sink={"out": "levels:2"})

    def test_connector_is_used_by_the_library(
        self, install: Callable[..., None], capsys: pytest.CaptureFixture[str]
    ) -> None:
        install()
        rp.run(PLAN, source="levels:1", sink="levels:it")
        assert capsys.readouterr().out == "it a 1.5\n"
        assert not open_sink("levels:it", PLAN, "out", continues=True).records_cut
        with pytest.raises(InputError, match="can be read again, not 'levels:1'"):
            open_inputs("levels:1", PLAN, 10, follow=False)

    def test_connector_is_looked_for_where_ripple_has_none(
        self, folder: Path, install: Callable[..., None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        install(scheme="csv", code="raise ValueError('asked')")
        (folder / "levels.txt").write_text(CSV)
        monkeypatch.setattr(installed, "_entries", lambda: pytest.fail("looked for"))
        assert rows_at("csv:levels.txt") == ROWS
        for place in ("-", "levels.csv", "./a:b.csv", "log:d/t", "synthetic:5"):
            find(place, "source")

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"code": "import nowhere_at_all"}, "cannot load levels:CONNECTOR: ModuleNotFoundErr"),
            ({"code": "1 / 0"}, "cannot load levels:CONNECTOR: ZeroDivisionError: division"),
            (
                {"value": "levels:CONECTOR"},
                "cannot load levels:CONECTOR: AttributeError: .* has no",
            ),
            ({"value": "nowhere_at_all:X"}, "cannot load nowhere_at_all:X: ModuleNotFoundError"),
            ({"value": "levels"}, "levels is of type module, and no ripple.connectors.connector"),
            ({"value": "levels:read"}, "levels:read is of type function, and no ripple.connecto"),
            (
                {"code": LEVELS.replace('scheme="levels"', 'scheme="lovels"')},
                "levels:CONNECTOR has the scheme 'lovels'",
            ),
            (
                {"code": LEVELS.replace('Use("levels:', 'Use("lovels:')},
                "cannot load lovels:.*: ModuleNotFoundError: No module named 'lovels'",
            ),
            (
                {"code": re.sub("levels:(read|Shout)", "levels:wrong", LEVELS)},
                "what levels:wrong returns, of type int, lacks something of ripple.connectors.con",
            ),
        ],
    )
    def test_error_of_a_broken_connector_names_its_package(
        self, install: Callable[..., None], given: dict[str, Any], words: str
    ) -> None:
        install(**given)
        for wanted in (
            lambda: rows_at("levels:2"),
            lambda: open_sink("levels:x", PLAN, "out"),
            lambda: open_sink("levels:x", PLAN, "out", continues=True),
        ):
            with pytest.raises(ConnectorError, match=rf"'levels' of ripple-levels 1.0: {words}"):
                wanted()

    def test_error_of_a_duplicate_scheme_names_both_packages(
        self, install: Callable[..., None]
    ) -> None:
        install()
        install("another")
        words = "the scheme 'levels' is of another 1.0 and ripple-levels 1.0: uninstall all but one"
        with pytest.raises(ConnectorError, match=words):
            rows_at("levels:2")
        assert registry.schemes() == [*own(), "levels"]

    def test_connectors_are_listed_though_one_is_broken(
        self, folder: Path, install: Callable[..., None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        install()
        install("broken", "1 / 0", module="broken", scheme="broken", value="broken:CONNECTOR")
        root = Path(rp.__file__).parents[1]
        monkeypatch.setenv("PYTHONPATH", f"{folder}/site:{root}")
        told = ripple("info")
        assert told.code == 0
        assert told.rows[-2].startswith(
            "  broken       connector 'broken' of broken 1.0: cannot lo"
        )
        assert told.rows[-1].startswith("  levels ")


def test_standard_streams_are_recognized_when_redirected_to_files(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "rows").write_text("passed over\nB,2.0,1,2,X\n")
    before, file = os.dup(0), os.open(folder / "rows", os.O_RDONLY)
    try:
        os.dup2(file, 0)
        os.lseek(0, len("passed over\n"), os.SEEK_SET)
        source = registry.find("/dev/stdin", "source")
        batches = list(CsvSource(source.path).batches())
    finally:
        os.dup2(before, 0)
        os.close(before)
        os.close(file)
    assert [row["symbol"] for batch in batches for row in batch.records.to_pylist()] == ["B"]
    os.write(1, b"before, ")  # pytest has a file behind it
    target = open_target("/dev/stdout")
    target.write(b"kept")
    target.commit()
    target.close()
    assert capfd.readouterr().out == "before, kept"


def test_connector_of_inputs_is_asked_for_inputs(
    install: Callable[..., None], folder: Path
) -> None:
    code = LEVELS.replace(
        "    sink=", '    continued_source=Use("levels:again", "all of the log"),\n    sink=', 1
    ).replace(
        "CONNECTOR =",
        "from ripple.connectors.log.opening import open_inputs\n\n"
        "def again(place, reading):\n"
        "    return open_inputs(place, reading) if place else wrong(place, reading)\n\nCONNECTOR =",
    )
    install(code=code)
    Topic.create(LiveDisk(folder), "t", PLAN.source.schema, partitions=2)
    inputs = open_inputs("levels:t", PLAN, 10, follow=True)
    assert inputs.names == ("levels/0", "levels/1")
    with pytest.raises(ConnectorError, match=r"ripple-levels 1.0: what levels:again returns"):
        open_inputs("levels:", PLAN, 10, follow=True)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3://b/x.csv", "S3://b/x.csv"),
        ("s3://b/x.csv", "csv:S3://b/x.csv?header=no"),
        ("s3://b/x.parquet", "parquet:s3://b/x.parquet/"),
    ],
)
def test_spellings_of_an_object_are_one_place(one: str, other: str) -> None:
    with pytest.raises(OutputError, match=re.escape(f"cannot write two things to {one}:")):
        check_places([], {"a": one, "b": other}, continues=False)
    with pytest.raises(OutputError, match="own source"):
        check_places([other], {"a": one}, continues=False)
    with pytest.raises(OutputError, match=r"the run's own source, S3://b/x\.\*, reads it, too"):
        check_places(["S3://b/x.*"], {"a": one}, continues=False)
    check_places([], {"a": one, "b": "s3://b/y.csv"}, continues=False)
