"""Transforms of a source: the contract of sources, each step, and errors of the file."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ripple as rp
from ripple.cli.main import main
from ripple.connectors.connector import Reading
from ripple.connectors.identity import identity_of
from ripple.connectors.memory import MemorySource
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.registry import innermost, own
from ripple.connectors.source_inputs import SourceInputs
from ripple.connectors.transforms.chain import HIDDEN, Chain
from ripple.connectors.transforms.opening import ThroughInputs, check, open_inputs, open_source
from ripple.core.errors import InputError
from ripple.model.batch import Batch
from ripple.model.records import checks_of, schema_of
from ripple.storage.log import PartitionWriter, Topic
from ripple.testing import Tick, source_suite
from ripple.testing.connectors import inputs_rules, source_rules
from ripple.world import LiveClock, LiveDisk
from tests.one_shot import one_shot

FILE = """
[[transform]]
filter = "kind"
is = ["tick", "tock"]

[[transform]]
rename = { n = "number", at_us = "at_ns" }

[[transform]]
timestamp = "at_ns"
from = "us"
"""
HOURS_NS = 3_600_000_000_000


@rp.record(version=1)
class Raw:
    n: int | None
    name: str | None
    price: float | None
    size: int | None
    at_us: int | None
    kind: str | None


def put(folder: Path, rows: list[dict[str, Any]]) -> str:
    """Each record behind one of another kind, and one of none."""
    (folder / "file.toml").write_text(FILE.replace('"us"', '"ns"'))
    disk, made = LiveDisk(folder), []
    for row in rows:
        raw = {"n": row["number"], "at_us": row["at_ns"]}
        raw |= {name: row[name] for name in ("name", "price", "size")}
        made += [{**raw, "kind": kind} for kind in ("beat", None, "tick")]
    is_there = disk.exists("ticks/topic")
    topic = Topic.open(disk, "ticks") if is_there else Topic.create(disk, "ticks", schema_of(Raw))
    columns = RecordShape(schema_of(Raw)).arrow_schema()
    with PartitionWriter(topic, 0, LiveClock()) as writer:
        for batch in pa.Table.from_pylist(made, columns).to_batches(max_chunksize=300):
            writer.append(batch)
    return f"{folder}/file.toml,log:{folder}/ticks"


TestThrough = source_suite(own()["through"], put)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """What reads a log is read from fewer of its offsets than the log: test_own.py has that."""
    monkeypatch.setattr(source_rules, "ROWS", 60)
    monkeypatch.setattr(inputs_rules, "ROWS", 60)


SHAPE = RecordShape(schema_of(Tick), checks_of(Tick))


def read(folder: Path, file: str, rows: list[Any], shape: RecordShape = SHAPE) -> Batch:
    """What becomes of lines of JSON."""
    (folder / "file.toml").write_text(file)
    (folder / "in.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    path = f"{folder}/file.toml,jsonl:{folder}/in.jsonl"
    (batch,) = one_shot(open_source, path, Reading("in", shape, 100))
    assert isinstance(batch, Batch)
    return batch


def tick(**given: Any) -> dict[str, Any]:
    return {"number": 1, "name": "abcdef", "price": 2.0, "size": 3, "at_ns": 4} | given


@pytest.mark.parametrize(
    ("unit", "given", "wanted"),
    [
        ("s", 2, 2_000_000_000),
        ("ms", -2, -2_000_000),
        ("ms", 9_223_372_036_855, None),
        ("iso", "1970-01-01T01:00:00Z", HOURS_NS),
        ("iso", "1970-01-01T01:00:00", HOURS_NS),
        ("iso", "1970-01-01T03:00:00.000000001+02:00", HOURS_NS + 1),
        ("iso", "1970-01-01", 0),
        ("iso", "noon", None),
    ],
)
def test_times(unit: str, given: Any, wanted: int | None, tmp_path: Path) -> None:
    file = f'[[transform]]\ntimestamp = "at_ns"\nfrom = "{unit}"\n'
    batch = read(tmp_path, file, [tick(at_ns=given)])
    if wanted is None:
        (bad,) = batch.rejected
        wrong = {
            "ms": "at_ns does not fit in 64 bits",
            "iso": "at_ns is no time of ISO 8601 such as 2026-01-31T09:30:00",
        }
        assert (bad.offset, bad.reason) == (0, wrong[unit])
        assert json.loads(bad.raw)["at_ns"] == given  # as it came
    else:
        assert batch.records["at_ns"].to_pylist() == [wanted]


def test_masked_text_is_nowhere(tmp_path: Path) -> None:
    file = '[[transform]]\nmask = "name"\nkeep = 2\n'
    rows = [tick(), tick(name="ab"), tick(price=-1), tick(size="x"), tick(name="äöü")]
    batch = read(tmp_path, file, rows)
    assert batch.records["name"].to_pylist() == ["****ef", "****", "****öü"]
    checked, unread = batch.rejected
    assert (checked.offset, json.loads(checked.raw)["name"]) == (2, "****ef")
    assert (unread.offset, unread.raw) == (3, HIDDEN)


@pytest.mark.parametrize(
    ("comparison", "numbers"),
    [
        ("is = 2", [2]),
        ("is_not = [1, 3]", [2, 4]),
        ("above = 1\nbelow = 4", [2, 3]),
        ("above = 2\nbelow = 4.0", [2, 3]),
    ],
)
def test_filter_keeps_only_true_rows(comparison: str, numbers: list[int], tmp_path: Path) -> None:
    rows = [tick(size=n, number=n) for n in (1, 2, 3, 4)] + [tick(size=None, number=5)]
    file = f'[[transform]]\nfilter = "size"\n{comparison}\n'
    if "." in comparison:
        file = file.replace('"size"', '"price"')
        rows = [tick(price=n + 0.25, number=n) for n in (1, 2, 3, 4)]
    batch = read(tmp_path, file, rows)
    assert batch.records["number"].to_pylist() == numbers
    assert batch.offsets().tolist() == [n - 1 for n in numbers]
    assert (batch.next_offset, batch.rejected) == (len(rows), ())


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("x = 1", "it has \\[\\[transform\\]\\] tables"),
        ("[[transform]]\n", "transform 1: it is one of rename, timestamp, mask, filter"),
        ('[[transform]]\nmask = "price"', "'price' is no text"),
        ('[[transform]]\nmask = "nope"', "there is no field 'nope'"),
        ('[[transform]]\nmask = "name"\nkep = 1', "mask has no 'kep'"),
        ('[[transform]]\nmask = "name"\nkeep = -1', "keeps a number of characters"),
        ('[[transform]]\nrename = { a = "name", b = "name" }', "two fields become one"),
        ('[[transform]]\nrename = { size = "name" }', "'size' becomes 'name', and is wanted"),
        ('[[transform]]\ntimestamp = "price"\nfrom = "s"', "no number of nanoseconds"),
        ('[[transform]]\ntimestamp = "at_ns"\nfrom = "h"', "not 'h'"),
        ('[[transform]]\nfilter = "size"', "filter needs is"),
        ('[[transform]]\nfilter = "size"\nis = []', "no value"),
        ('[[transform]]\nfilter = "size"\nis = [1, "a"]', "several types"),
        ('[[transform]]\nfilter = "size"\nis = "a"', "'size' is int64, and compared with string"),
        ('[[transform]]\nfilter = "size"\nabove = "a"', "above a number"),
        ("[[transform", "file.toml: Expected"),
    ],
)
def test_errors_of_the_file(file: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=says) as refused:
        read(tmp_path, file, [])
    assert str(refused.value).count("file.toml") == 1


def test_check_reads_the_file_and_checks_the_source(tmp_path: Path) -> None:
    path = put(tmp_path, [])
    wanted = f"transforms: 3, before log:{tmp_path}/ticks: a topic of 1 partitions, 6 fields"
    assert check(path) == wanted
    with pytest.raises(InputError, match=r"cannot read nope\.toml: No such file"):
        check("nope.toml,csv:a")
    with pytest.raises(InputError, match=r"it must be through:FILE\.toml,URI"):
        check("nope.toml")


async def test_keys_of_partitions_have_our_names(tmp_path: Path) -> None:
    put(tmp_path, [])
    schema = schema_of(Raw)
    Topic.create(LiveDisk(tmp_path), "keyed", schema, partitions=2, key=["n"])
    path = f"{tmp_path}/file.toml,log:{tmp_path}/keyed"

    async def keys(path: str) -> Any:
        inputs = open_inputs(path, Reading("in", SHAPE, 10))
        await inputs.bounds()
        found = inputs.keyed_by
        await inputs.close()
        return found

    assert await keys(path) == ("number",)
    (tmp_path / "file.toml").write_text(FILE + '[[transform]]\nmask = "name"\n')
    assert await keys(path) == ("number",)


def test_routes_by_content(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = ["X,1,1,1,a", "Y,2,2,2,b", "Z,3,3,3,a", "X,4,4,4,b"]
    (tmp_path / "in.csv").write_text("\n".join(rows))
    for name in ("rest", "x", "a"):
        assert main(["log", "create", "--schema", "trade", f"{tmp_path}/{name}"]) == 0
    append = ["log", "append", f"{tmp_path}/rest", f"{tmp_path}/in.csv"]
    routes = ["--route", f"symbol=X:{tmp_path}/x", "--route", f"venue=a:{tmp_path}/a"]
    assert main([*append, *routes]) == 0
    found = {}
    for name in ("rest", "x", "a"):
        capfd.readouterr()
        assert main(["log", "tail", f"{tmp_path}/{name}"]) == 0
        found[name] = [json.loads(line)["size"] for line in capfd.readouterr().out.splitlines()]
    assert found == {"x": [1, 4], "a": [3], "rest": [2]}
    for route, says in {
        "symbol": "it is FIELD=VALUE:DIR/TOPIC",
        f"nope=1:{tmp_path}/x": "of the fields symbol",
        f"size=a:{tmp_path}/x": "size is int64",
        f"size=1:{tmp_path}/nope": "there is no topic",
    }.items():
        assert main([*append, "--route", route]) != 0
        assert says in capfd.readouterr().err


def test_what_the_inputs_behind_can_is_found_and_passed_on(tmp_path: Path) -> None:
    class Keeping(SourceInputs):
        told: Any = None

        def stored(self, checkpoints: Any) -> None:
            self.told = checkpoints

    held = Keeping(MemorySource([], SHAPE))
    inputs = ThroughInputs(held, Chain([], SHAPE))
    # As later versions of Python look for the methods of a protocol: past __getattr__.
    for name in ("stored", "originals", "trace", "contexts", "open", "more", "wake", "sync"):
        assert inspect.getattr_static(inputs, name)
    inputs.stored([({"in": 1}, {})])
    assert held.told == [({"in": 1}, {})]


def test_other_transforms_of_a_source_are_another_source(tmp_path: Path) -> None:
    file, other = tmp_path / "file.toml", tmp_path / "other.toml"
    file.write_text(FILE)
    (tmp_path / "same.toml").write_text(f"# the same\n{FILE}")
    other.write_text(FILE.replace('"us"', '"ms"'))
    texts = [
        identity_of(f"through:{tmp_path}/{name},log:{tmp_path}/{topic}", "continued_source")
        for name, topic in (("file.toml", "a"), ("same.toml", "./a"), ("other.toml", "a"))
    ]
    assert texts[0] == texts[1] != texts[2]
    assert innermost(f"through:{file},through:{other},clock:1s,0") == "clock:1s,0"
