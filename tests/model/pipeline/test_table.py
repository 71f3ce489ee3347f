"""Tables from topics as plans: what they are made of, and mistakes named where they are written."""

from __future__ import annotations

from typing import Any

import pytest

import ripple as rp
from ripple.core.errors import PlanError
from ripple.model.pipeline.division import need_no_table, need_one_division
from ripple.model.schema.types import Field, Int, List, Schema, String


@rp.record(version=1)
class Rate:
    currency: str
    rate: float = rp.field(gt=0)
    region: str | None
    gone: bool | None


def rates(**options: Any) -> rp.Pipeline:
    return rp.Pipeline("fx").table("rates", Rate, **{"key": "currency", **options})


def test_a_table_is_a_source_and_the_fold_of_its_newest_records() -> None:
    plan = rates().sink("out").plan()
    assert [node.of.name for node in plan.nodes] == ["rates", "rates.newest", "rates.rows", "out"]
    assert plan.is_chain
    assert [str(field.name) for field in plan.output("out").fields] == [
        "currency",
        "rate",
        "region",
        "gone",
    ]
    (text, *more) = plan.describe().splitlines()[1:4]
    assert text == "table rates: currency string, rate float, region string?, gone bool?"
    assert more == ["    key currency", "    deleted by a record without a value"]


def test_the_field_that_tells_a_deletion_is_none_of_a_row() -> None:
    plan = rates(deleted="gone").sink("out").plan()
    assert [field.name for field in plan.output("out").fields] == ["currency", "rate", "region"]
    assert "deleted where gone is true" in plan.describe()


def versions(**options: Any) -> rp.Pipeline:
    @rp.record(version=1)
    class Timed:
        currency: str
        rate: float | None
        gone: bool | None
        at: int

    return rp.Pipeline("fx").table(
        "rates", Timed, **{"key": "currency", "time": "at", "out_of_order": "2s", **options}
    )


def test_versions_are_a_stream_with_a_field_that_tells_deletions() -> None:
    plan = versions().versions("changes").sink("out").plan()
    assert [node.of.name for node in plan.nodes] == ["rates", "changes", "out"]
    text = plan.describe()
    assert (
        "versions changes: currency string, rate float?, gone bool?, at int, deleted bool" in text
    )
    assert "    time at, 2s late" in text
    assert "    deleted where deleted is true\n    node rates/changes#" in text
    marked = versions(deleted="gone").versions("changes").sink("out").plan()
    fields = [field.name for field in marked.output("out").fields]
    assert fields == ["currency", "rate", "gone", "at"]


def test_a_table_beside_its_versions_is_as_without_them() -> None:
    table = versions()
    alone = table.sink("rows").plan()
    both = table.sink("rows").also(table.versions("changes").sink("out")).plan()
    after = table.sink("rows").versions("changes").sink("out").plan()
    assert set(alone.node_keys) < set(both.node_keys) == set(after.node_keys)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            lambda: rates().versions("v"),
            "and it has none: name the field with .table(..., time=...",
        ),
        (
            lambda: versions().filter("f", rp.col("rate") > 1).versions("v"),
            "put it right after .tab",
        ),
        (lambda: versions().versions("v").versions("w"), "put it right after .table(...)"),
        (
            lambda: versions().partition("p", key="currency").fold("f", n=rp.count()).versions("v"),
            "versions are those of a table from a topic",
        ),
        (lambda: rp.Pipeline("fx").versions("v"), "versions are those of a table from a topic"),
        (lambda: versions(time="rate"), "the event time 'rate' is optional float: it must be an"),
        (lambda: versions(time=None), "out_of_order needs an event time: name it with time="),
        (lambda: rates(reject_future="1s"), "reject_future needs an event time"),
        (lambda: rates(idle="1s"), "idle needs an event time"),
    ],
)
def test_where_there_are_no_versions_a_remedy_is_named(wrong: Any, said: str) -> None:
    with pytest.raises(PlanError) as error:
        wrong()
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_record_with_a_field_of_the_name_of_the_mark_says_what_it_means() -> None:
    @rp.record(version=1)
    class Marked:
        id: int
        deleted: bool
        at: int

    table = rp.Pipeline("p").table("t", Marked, key="id", time="at")
    with pytest.raises(PlanError, match=r"versions 'v': .* say .table\(..., deleted='de"):
        table.versions("v")
    told = rp.Pipeline("p").table("t", Marked, key="id", time="at", deleted="deleted")
    assert told.versions("v").sink("out").plan().steps[0].deleted == "deleted"


@pytest.mark.parametrize(
    "options",
    [
        {"key": ["currency", "region_id"]},
        {"deleted": "gone"},
        {"format": "debezium"},
        {"format": "debezium", "truncate": "letter"},
        {"topic": "rates-eu"},
    ],
)
def test_what_decides_the_rows_is_in_the_keys_of_nodes(options: dict[str, Any]) -> None:
    @rp.record(version=1)
    class Other:
        currency: str
        rate: float
        region_id: int
        gone: bool

    def plan(**given: Any) -> rp.Pipeline:
        return rp.Pipeline("fx").table("rates", Other, **{"key": "currency", **given}).sink("out")

    assert plan(**options).plan().node_keys != plan().plan().node_keys


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"key": None}, "table 'rates': a row is found by its key: name a field"),
        ({"key": ()}, "table 'rates': a row is found by its key: name a field"),
        ({"key": "symbol"}, "table 'rates': there is no field 'symbol'"),
        (
            {"key": "region"},
            "the key 'region' may be null, and null identifies no row: let the record",
        ),
        ({"key": "rate"}, "the key 'rate' is float: choose a text, an integer, a bool, a date"),
        ({"key": ["currency", "currency"]}, "the key names 'currency' twice"),
        ({"deleted": "region"}, "deleted='region' is optional string: name a bool"),
        ({"deleted": "no"}, "there is no field 'no'"),
        ({"format": "maxwell"}, "format is 'maxwell': there is 'debezium', and None for records"),
        ({"format": "debezium", "deleted": "gone"}, "leave deleted= out"),
        ({"truncate": "letter"}, "only envelopes of Debezium tell of truncations"),
        ({"format": "debezium", "truncate": "go"}, "truncate is 'go': it must be 'stop' or"),
    ],
)
def test_a_mistake_is_named_with_its_remedy(options: dict[str, Any], said: str) -> None:
    with pytest.raises(PlanError) as error:
        rates(**options)
    assert said in str(error.value)
    assert str(error.value).startswith("table 'rates': ")
    assert "\n" not in str(error.value)


def test_a_field_that_no_table_holds_is_named() -> None:
    schema = Schema("R", (Field("id", Int()), Field("tags", List(String()))))
    with pytest.raises(PlanError, match="table 'r': 'tags' is list, and a table holds numbers"):
        rp.Pipeline("p").table("r", schema, key="id")


def test_windows_tables_of_one_name_and_steps_on_half_a_fold_are_refused() -> None:
    with pytest.raises(
        PlanError, match=r"window 'w': .* take its versions, .* read the topic as events, with .sou"
    ):
        rates().window("w", rp.Tumbling("1s"))
    with pytest.raises(PlanError, match=r"window 'w': .* with .source"):
        rates().partition("p", key="currency").window("w", rp.Tumbling("1s"))
    folded = rates().partition("p", key="currency").fold("f", n=rp.count())
    with pytest.raises(PlanError, match=r"window 'w': .* with .source"):
        folded.window("w", rp.Tumbling("1s"))
    with pytest.raises(PlanError, match=r"finals 'e': .* may change for ever: .* with .source"):
        rates().finals("e")
    with pytest.raises(PlanError, match=r"distinct 'd': a table has one row a key: .* .source"):
        rates().distinct("d", key="currency", within="1s")
    with pytest.raises(PlanError, match=r"flat_map 'm': a table has one row a key: .* .source"):
        rates().flat_map("m", lambda row: [row], into=Rate)
    with pytest.raises(PlanError, match=r"union 'u': 'rates.rows' is of a table, and streams"):
        rp.union("u", rates(), rates())
    with pytest.raises(PlanError, match="table 'rates': another step has that name"):
        rates().sink("out").table("rates", Rate, key="currency")
    pipeline = rp.Pipeline("fx")
    one, other = (pipeline.table("rates", Rate, key=key) for key in ("currency", "currency"))
    with pytest.raises(PlanError, match="each branch has a different source named 'rates'"):
        one.sink("a").also(other.sink("b"))
    with pytest.raises(PlanError, match="another table begins another branch"):
        rates().partition("p", key="currency").table("more", Rate, key="currency")
    with pytest.raises(PlanError, match="the rows of a table"):
        rates().partition("p", key="currency").fold("f", last=rp.last("rate"))


def test_where_tables_do_not_reach_they_are_refused_by_name() -> None:
    plan = rates().sink("out").plan()
    with pytest.raises(PlanError, match="'fx' reads the table 'rates', and Spark takes pipelines"):
        need_no_table(plan, "Spark")
    need_one_division(plan, "a cluster")
    need_one_division(plan, "a cluster", {"rates": ("currency",)})
    with pytest.raises(PlanError, match=r"a cluster leaves the records of the table 'rates' in"):
        need_one_division(plan, "a cluster", {"rates": ("region",)})
    with pytest.raises(PlanError, match=r"divided by nothing, and rates\.newest needs all of one"):
        need_one_division(plan, "a cluster", {"rates": ()})
