"""Records in records: the same columns, letters and results whichever way they came."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple as rp
from ripple.connectors.files.json.source import JsonSource
from ripple.connectors.formats.json import JsonValues
from ripple.connectors.memory import MemorySink
from ripple.connectors.record_shape import RecordShape
from ripple.core.errors import PlanError, SchemaError
from ripple.engine.machine import Engine
from ripple.model.schema.nested import NESTED_DEPTH_MAX, flattened
from ripple.model.schema.types import Field, Int, Record, Schema, String
from ripple.testing import check_pipeline
from tests.connectors.read_records import PLACES
from tests.examples import EXAMPLES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@rp.record
class Org:
    name: str
    size: int | None = None


@rp.record
class Actor:
    login: str = rp.field(min_length=1)
    id: int = rp.field(gt=0)
    org: Org | None = None


@rp.record
class Meta:
    at_ns: rp.Timestamp


@rp.record
class Tagged:
    tags: list[str]


@rp.record
class Post:
    post: Tagged


@rp.record
class Event:
    type: str
    actor: Actor
    meta: Meta


EVENTS = rp.Pipeline("events").source("events", Event, time=Event.meta.at_ns)
COUNTS = (
    EVENTS.filter("known", Event.actor.id < 100)
    .partition("by-login", key=Event.actor.login)
    .fold("count", n=rp.count(), ids=rp.sum("actor.id"), org=rp.last(rp.col("actor.org.name")))
    .sink("counts")
)
ROWS: list[dict[str, Any]] = [
    {
        "type": "push",
        "actor": {"login": "ada", "id": 1, "org": {"name": "x"}},
        "meta": {"at_ns": 1},
    },
    {"type": "push", "actor": {"login": "ada", "id": 2, "org": None}, "meta": {"at_ns": 2}},
    {"type": "push", "actor": {"login": "bob", "id": 100, "org": None}, "meta": {"at_ns": 3}},
    {"type": "star", "actor": {"login": "bob", "id": 4, "org": {"size": 3}}, "meta": {"at_ns": 4}},
    {"type": "star", "actor": {"login": "bob", "id": 0, "org": None}, "meta": {"at_ns": 5}},
    {"type": "star", "actor": {"login": "cy", "id": 5, "org": {"name": "y"}}, "meta": {"at_ns": 6}},
]
EXPECTED = [("ada", 2, 3, "x"), ("cy", 1, 5, "y")]
TABLE = pa.Table.from_pylist(ROWS)


def flat(row: dict[str, Any], at: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in row.items():
        found |= flat(value, f"{at}{name}.") if isinstance(value, dict) else {at + name: value}
    return found


def instance(row: dict[str, Any]) -> Event:
    actor = row["actor"]
    org = actor["org"] and Org(actor["org"].get("name"), actor["org"].get("size"))
    return Event(row["type"], Actor(actor["login"], actor["id"], org), Meta(**row["meta"]))


def in_lines(folder: Path) -> Path:
    path = folder / "events.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    return path


def in_parquet(folder: Path) -> Path:
    pq.write_table(TABLE, folder / "events.parquet")
    return folder / "events.parquet"


def in_csv(folder: Path) -> Path:
    names = [field.name for field in COUNTS.plan().source.fields]
    with (folder / "events.csv").open("w") as file:
        writer = csv.DictWriter(file, names, restval="")
        writer.writeheader()
        for row in ROWS:
            # An empty text is a value; what is not there is not.
            writer.writerow({k: v for k, v in flat(row).items() if v is not None and k in names})
    return folder / "events.csv"


@pytest.mark.parametrize(
    "given",
    [
        lambda _: ROWS,
        lambda _: [flat(row) for row in ROWS],
        lambda _: map(instance, ROWS),
        lambda _: TABLE,
        lambda _: pd.DataFrame(ROWS),
        in_lines,
        in_parquet,
        in_csv,
    ],
    ids=["dicts", "flat", "instances", "table", "pandas", "lines", "parquet", "csv"],
)
@pytest.mark.filterwarnings("ignore::ripple.LostRecordsWarning")
def test_every_source_flattens_them_alike(given: Callable[[Path], Any], tmp_path: Path) -> None:
    sink = MemorySink()
    source = given(tmp_path)
    report = rp.run(COUNTS, source=source, sink=sink, header=str(source).endswith(".csv"))
    found = [(row["actor.login"], row["n"], row["ids"], row["org"]) for row in sink.rows()]
    assert sorted(found) == EXPECTED
    assert sum(report.rejected.values()) == 2, report.rejected


def test_the_engine_takes_structs_and_agrees_with_the_reference() -> None:
    engine = Engine(COUNTS.plan())
    (batch,) = TABLE.to_batches()
    refused = engine.apply("events", batch, batch.num_rows)
    assert [(one.row, one.reason) for one in refused] == [
        (3, "the field 'actor.org.name' is null"),
        (4, "actor.id is not positive"),
    ]
    check_pipeline(
        COUNTS, [{"actor.org.name": None, "actor.org.size": None} | flat(one) for one in ROWS]
    )


@rp.record
class Person:
    login: str
    home: Org | None = None


JOINED = {
    "table": lambda: (
        COUNTS.join(
            "with-home",
            rp.Pipeline("events").table("others", Person, key="login"),
            left_on="actor.login",
            right_on="login",
            how="left",
        ),
        [{"login": "ada", "home.name": "h", "home.size": 1}, {"login": "cy"}],
        {("ada", "home.name", "h"), ("cy", "home.name", None)},
    ),
    "as of": lambda: (
        EVENTS.join_asof(
            "before",
            rp.Pipeline("events").source("others", Event, time=Event.meta.at_ns),
            on="actor.login",
            emit="final",
        ),
        [flat(one) for one in ROWS[:1]],
        {("ada", "actor.id_right", 1), ("cy", "actor.id_right", None)},
    ),
}


JOINED["near"] = lambda: (
    EVENTS.join_interval(
        "near",
        rp.Pipeline("events").source("others", Event, time=Event.meta.at_ns),
        on="actor.login",
        within=("-1h", "0s"),
        how="left",
        emit="final",
    ),
    [flat(one) for one in ROWS[:1]],
    {("ada", "actor.id_right", 1), ("cy", "actor.id_right", None)},
)


@pytest.mark.parametrize("kind", JOINED)
def test_joins_show_values_by_path(kind: str) -> None:
    pipeline, others, expected = JOINED[kind]()
    pipeline, found = pipeline.sink("out"), MemorySink()
    rows = {"others": others, "events": [flat(ROWS[at]) for at in (0, 1, 2, 5)]}
    rp.run(pipeline, source=rows, sink={"out": found})
    shown = {
        (row["actor.login"], name, row[name]) for row in found.rows() for _, name, _ in expected
    }
    assert expected <= shown, shown
    check_pipeline(pipeline, [(name, row) for name, of in rows.items() for row in of])


def test_a_path_is_the_key_of_a_constant() -> None:
    people = rp.constant("people", [{"login": "ada", "name": "Ada L."}], key="login")
    named = EVENTS.join("named", people, left_on="actor.login", right_on="login", how="left")
    found = MemorySink()
    rp.run(named.sink("out"), source=[flat(ROWS[at]) for at in (0, 1, 2, 5)], sink={"out": found})
    shown = {(row["actor.login"], row["name"]) for row in found.rows()}
    assert {("ada", "Ada L."), ("cy", None)} <= shown


def test_functions_get_instances() -> None:
    def org_of(event: Event) -> dict[str, Any]:
        assert isinstance(event.actor, Actor)
        org = event.actor.org
        return {"name": "none" if org is None else org.name, "size": None}

    sink = MemorySink()
    rows = [ROWS[0], ROWS[1]]
    rp.run(EVENTS.map("org", org_of, into=Org).sink("out"), source=rows, sink=sink)
    assert [row["name"] for row in sink.rows()] == ["x", "none"]


def test_a_parquet_file_is_read_by_path(tmp_path: Path) -> None:
    wide = [row | {"actor": row["actor"] | {"url": "u"}, "more": [1]} for row in ROWS]
    pq.write_table(pa.Table.from_pylist(wide), tmp_path / "wide.parquet")
    sink = MemorySink()
    with pytest.warns(rp.LostRecordsWarning):
        rp.run(COUNTS, source=tmp_path / "wide.parquet", sink=sink)
    assert sorted(row["actor.login"] for row in sink.rows()) == ["ada", "cy"]


# Lines, against the standard library.

SHAPE = RecordShape(
    flattened(
        Schema(
            "r",
            (
                Field("a", Int(), optional=True),
                Field(
                    "u", Record((Field("i", Int()), Field("v", Record((Field("t", String()),)))))
                ),
            ),
        )
    )
)
PATHS = {"a": ("a",), "u.i": ("u", "i"), "u.v.t": ("u", "v", "t")}
LEAF = st.one_of(st.none(), st.integers(0, 9), st.sampled_from(["", "x"]), st.just([1, {"i": 2}]))
NAMES = st.sampled_from(["a", "u", "v", "i", "t", "u.i", "w"])
OBJECTS = st.recursive(LEAF, lambda inner: st.dictionaries(NAMES, inner, max_size=4), max_leaves=8)


def judged(row: dict[str, Any]) -> dict[str, Any] | None:
    found: dict[str, Any] = {}
    for name, path in PATHS.items():
        value: Any = row
        for part in path:
            if value is not None and not isinstance(value, dict):
                return None
            value = (value or {}).get(part)
        found[name] = value
    for name in ("a", "u.i"):
        if not isinstance(found[name], int | None):
            return None
    return found if isinstance(found["u.v.t"], str) and found["u.i"] is not None else None


@given(st.lists(st.dictionaries(NAMES.filter(lambda one: one != "u.i"), OBJECTS, max_size=4)))
@settings(max_examples=25 * EXAMPLES)
def test_lines_are_read_as_the_standard_library_does(rows: list[dict[str, Any]]) -> None:
    texts = [json.dumps(row).encode() for row in rows]
    batch = JsonValues(SHAPE).batch(pa.array(texts, pa.binary()))
    assert batch.records.to_pylist() == [one for row in rows if (one := judged(row)) is not None]
    assert len(batch.rejected) == sum(judged(row) is None for row in rows)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"u": 5}', "u is not a record"),
        ('{"u": [{"i": 5}]}', "u is not a record"),
        ('{"u": {"i": 1, "v": "t"}}', "u.v is not a record"),
        ('{"u": {"i": [1], "v": {"t": ""}}}', "u.i is not an integer"),
        ('{"u": null}', "u is empty"),
        ('{"a": 1}', "u is empty"),
        ('{"u": {"i": 1}, "u": {}}', "u is there twice"),
        ('{"u": {"i": 1}, "u.i": 1}', "u.i is there twice"),
        ('{"u": {"i": 1, }}', "not a JSON record"),
        ('{"u": {"i": 1}', "not a JSON record"),
        ('{"u": {"i": 1}}}', "not a JSON record"),
    ],
)
def test_a_letter_names_the_path(line: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(line + "\n")
    (batch,) = JsonSource(tmp_path / "a.jsonl", SHAPE).batches()
    assert [bad.reason for bad in batch.rejected] == [reason]


def test_a_whole_name_comes_before_a_path(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"u": 1, "u.i": 7, "u.v.t": "x"}\n')
    (batch,) = JsonSource(tmp_path / "a.jsonl", SHAPE).batches()
    assert batch.records.to_pylist() == [{"a": None, "u.i": 7, "u.v.t": "x"}]
    named = RecordShape(Schema("r", (Field("u", Int()), Field("u.i", Int()))))
    (tmp_path / "b.jsonl").write_text('{"u": 1, "u.i": 7}\n')
    (batch,) = JsonSource(tmp_path / "b.jsonl", named).batches()
    assert batch.records.to_pylist() == [{"u": 1, "u.i": 7}]


# What does not fit is said in one line.


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"type": "a", "actor": 5, "meta": {"at_ns": 1}}], "'actor' must be a record with"),
        ([{"type": "a", "meta": {"at_ns": 1}}], "no column 'actor.login': it has type, meta"),
        (pa.Table.from_pylist([{"actor": 5}]), "declares a record, with 'actor.login'"),
        (pa.Table.from_pylist([{"actor": [{"id": 5}]}]), "declares a record, with 'actor.login'"),
        (pa.Table.from_pylist([{"type": "a", "actor": {"id": 5}}]), "it has type, actor.id"),
    ],
)
def test_columns_and_values_that_are_no_records_are_refused(rows: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        rp.run(COUNTS, source=rows, sink=MemorySink())


def test_a_wrong_path_names_what_there_is() -> None:
    with pytest.raises(PlanError, match=r"no field 'actor.logn'. Did you mean 'actor.login'\?"):
        EVENTS.partition("by", key="actor.logn")
    with pytest.raises(
        PlanError, match=r"'actor' is a record: name one of its fields, actor.login"
    ):
        EVENTS.partition("by", key=Event.actor)  # type: ignore[arg-type]
    with pytest.raises(PlanError, match=r"no field 'actor.nick'. The fields are: actor.login"):
        Event.actor.nick  # type: ignore[attr-defined] # noqa: B018


def test_names_that_clash_and_records_too_deep_are_refused() -> None:
    inner = Record((Field("id", Int()),))
    with pytest.raises(SchemaError, match=r"has a field 'user.id' and a record with a field of"):
        flattened(Schema("click", (Field("user", inner), Field("user.id", Int()))))
    with pytest.raises(SchemaError, match=r"the record 'user' has a field 'a.b'"):
        flattened(Schema("click", (Field("user", Record((Field("a.b", Int()),))),)))
    for depth in range(NESTED_DEPTH_MAX):
        assert len(flattened(Schema("deep", (Field("r", inner),))).fields) == 1, depth
        inner = Record((Field("r", inner),))
    with pytest.raises(PlanError, match="records are more than 8 deep"):
        rp.Pipeline("deep").source("deep", Schema("deep", (Field("r", inner),)))


@pytest.mark.parametrize("kind", ["jsonl", "list", "parquet"])
def test_records_have_lists(kind: str, tmp_path: Path) -> None:
    rows = [{"post": {"tags": ["a", "b"]}}, {"post": {"tags": []}}]
    tags = rp.col("post.tags").list
    pipeline = rp.Pipeline("p").source("posts", Post).derive("d", n=tags.len(), last=tags.get(-1))
    found = rp.collect(pipeline.sink("out"), PLACES[kind](tmp_path, rows)).table().to_pylist()
    assert [(row["post.tags"], row["n"], row["last"]) for row in found] == [
        (["a", "b"], 2, "b"),
        ([], 0, None),
    ]
