"""Names of steps in other libraries: the error has the way to write them here."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest

import ripple as rp
from ripple.model.other_names import _HERE_BY_KIND
from tests.records import Trade

PIPELINE = rp.Pipeline("p")
WHEN = rp.when(rp.col("x") > 1)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("union", r"rp\.union\("),
        ("concat", r"rp\.union\("),
        ("group_by", r"\.partition\(.*\.fold\("),
        ("groupBy", r"\.partition\(.*\.fold\("),
        ("agg", r"\.fold\("),
        ("with_columns", r"\.derive\("),
        ("drop_duplicates", r"\.distinct\("),
        ("merge_asof", r"\.join_asof\(.*emit="),
        ("join_where", r"\.join_interval\(.*emit="),
        ("write_csv", r"\.sink\("),
        ("shift", r"\.scan\(.*rp\.lag"),
        ("dropna", r"\.filter\(.*is_not_null"),
        ("mapValues", r"\.map\("),
    ],
)
def test_step_of_another_library_is_refused_with_the_way_to_write_it(name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=f"'Pipeline' object .* '{name}': write .*{said}"):
        getattr(PIPELINE, name)


def test_other_names_are_unknown_as_in_any_class_and_suggest_near_ones() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'sinks'$") as it:
        PIPELINE.sinks  # type: ignore[attr-defined]  # noqa: B018
    assert (it.value.name, it.value.obj) == ("sinks", PIPELINE)
    assert not hasattr(PIPELINE, "union")
    assert "union" not in dir(PIPELINE)
    assert copy.copy(PIPELINE).name == "p"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("avg", r"rp\.mean\("),
        ("std", r"rp\.stddev\("),
        ("HoppingWindow", r"rp\.Sliding\("),
        ("Dataflow", r"rp\.Pipeline\(.*\.source\("),
        ("read_csv", r"rp\.run\(.*source="),
        ("Int64", "int: it has 64 bits"),
    ],
)
def test_function_of_another_library_is_refused_with_the_way_to_write_it(
    name: str, said: str
) -> None:
    with pytest.raises(AttributeError, match=f"module 'ripple' .* '{name}': write {said}"):
        getattr(rp, name)


def test_unknown_function_suggests_near_ones() -> None:
    with pytest.raises(AttributeError, match=r"module 'ripple' has no attribute 'sume'$") as it:
        rp.sume  # type: ignore[attr-defined]  # noqa: B018
    assert (it.value.name, it.value.obj) == ("sume", rp)


@pytest.mark.parametrize(
    ("misused", "said"),
    [
        (lambda x: x.sum(), r"'Expr' .* 'sum': write \.fold\(\"NAME\", result=rp\.sum\("),
        (lambda x: x.nUnique(), r"'nUnique': write .*rp\.count_distinct\("),
        (lambda x: x.alias("y"), r"'alias': write \.derive\("),
        (lambda x: x.str.lower(), r"'TextMethods' .* 'lower': write \.str\.to_lowercase\("),
        (lambda x: x.str.to_decimal(), r"'to_decimal': write \.cast\(rp\.Decimal\("),
        (lambda x: x.str.to_datetime(), r"'to_datetime': write \.cast\(datetime\.datetime\)$"),
        (lambda x: x.dt.tz_convert("UTC"), r"'tz_convert': write \.dt\.in_zone\("),
        (lambda x: x.rolling_std(20), r"'rolling_std': write \.scan\(.*rp\.rolling_stddev\("),
        (lambda x: x.isin([1]), r"'isin': write .*\.is_in\("),
        (lambda x: x.cum_sum(), r"'cum_sum': write \.fold\(.*: .* running total$"),
        (lambda x: x.total(), "'Expr' object has no attribute 'total'$"),
        (lambda x: x.dt.minutes(), r"'minutes': write \.dt\.minute\(\)$"),
        (lambda x: x.str.split(":").get(0), r"'get': take one of the parts, .*\.list\.get\(0\)$"),
        (lambda x: x.str.split(":").list.first(), r"has only get\(n\), not 'first'$"),
        (lambda x: rp.when(x > 1).otherwise(0), r"'When' .* write rp\.when\(.*\.then\("),
        (lambda x: rp.when(x > 1).then(0).alias("y"), r"'Then' .* write \.derive\("),
        (lambda x: rp.sum(x).alias("y"), r"'Sum' .* write \.fold\(\"NAME\", result="),
        (lambda x: rp.sum(x).nothing, "'Sum' object has no attribute 'nothing'$"),
    ],
)
def test_method_of_another_library_is_refused_with_the_way_to_write_it(
    misused: Callable[[Any], Any], said: str
) -> None:
    with pytest.raises(AttributeError, match=said):
        misused(rp.col("x"))


@pytest.mark.parametrize(
    "computed",
    [
        lambda x: rp.sum("x") / rp.count(),
        lambda x: rp.sum("x") + 1,
        lambda x: 1 - rp.sum("x"),
        lambda x: x * rp.sum("x"),
        lambda x: -rp.sum("x"),
        lambda x: rp.max("x") > 1,
        lambda x: PIPELINE.source("trades", Trade).derive("d", y=rp.sum("size")),
    ],
)
def test_arithmetic_with_aggregates_is_refused_with_the_way_to_write_it(
    computed: Callable[[Any], Any],
) -> None:
    with pytest.raises(rp.PlanError, match=r"result of \.fold, and later steps .*\.derive\("):
        computed(rp.col("x"))


def test_values_are_copied_and_asked_for_names_as_before() -> None:
    for value in (rp.col("x") > 1, rp.sum("x"), rp.when(rp.col("x") > 1).then(1)):
        assert repr(copy.deepcopy(value)) == repr(value)
        assert not hasattr(value, "alias")


@pytest.mark.parametrize(
    "written", sorted({way for ways in _HERE_BY_KIND.values() for way in ways.values()})
)
def test_each_hint_names_existing_steps_and_functions(written: str) -> None:
    for owner, name in re.findall(r"(rp)?\.([a-z_]\w*)\(", written):
        x = rp.col("x")
        spaces = (x.str, x.str.split("/").list, x.dt)
        homes = (rp,) if owner else (rp.Pipeline, x, WHEN, WHEN.then(1), *spaces)
        assert any(hasattr(home, name) for home in homes), name


@pytest.mark.parametrize(
    "step",
    [
        lambda events: events.filter(rp.col("size") > 0),
        lambda events: events.partition(key="symbol"),
        lambda events: events.window(rp.Tumbling("60s")),
        lambda events: events.fold(n=rp.count()),
        lambda events: events.sink(),
    ],
)
def test_step_without_its_name_says_that_it_comes_first(step: Callable[[Any], Any]) -> None:
    with pytest.raises(
        rp.PlanError, match=r'^\w+: .* name .* comes first.*: write \.\w+\("NAME", '
    ):
        step(PIPELINE.source("trades", Trade))


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (
            lambda events: events.partition("symbol"),
            r"partition 'symbol': missing .*'key'.*: write \.partition\(\"NAME\", key=\.\.\.\)",
        ),
        (
            lambda events: events.partition("k", key="symbol").fold("n", rp.count()),
            r"fold 'n': .* have no names of their own: name it, as in count=rp\.count\(\)",
        ),
        (
            lambda events: events.partition("k", key="symbol").fold("n", rp.top_k("symbol", 2)),
            r"results of rp\.top_k\('symbol', 2\) .*, as in top_k=rp\.top_k\('symbol', 2\)",
        ),
        (
            lambda events: events.join_asof("j", events, by="symbol", emit="final"),
            r"join_asof 'j': .*'by': write \.join_asof\(\"NAME\", .*, optionally with .*\bon=",
        ),
        (lambda events: rp.union(events, events), r"union: .* comes first.*: write rp\.union\("),
        (lambda events: events.sink("a").sink("a"), "sink 'a': another step .*, as 'a-2'"),
    ],
)
def test_step_with_wrong_arguments_says_how_it_is_written(
    step: Callable[[Any], Any], said: str
) -> None:
    with pytest.raises(rp.PlanError, match=said):
        step(PIPELINE.source("trades", Trade))
