"""Pipelines as users write them: their plans, and the error of each mistake."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import ripple as rp
import ripple.model.aggregate as rpa
from ripple.core.errors import PlanError
from ripple.model.aggregate import Aggregate
from ripple.model.expression import col
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.draft import REFUSALS, TRANSITIONS, Stage
from ripple.model.schema.types import Field, Float, Int, Int64, Option, Schema, String
from ripple.model.window import OnCount, Session, Sliding, Tumbling
from tests.records import Trade

_SYMBOL = (Field("symbol", String()),)


def _events() -> Pipeline:
    return Pipeline("vwap-60s").source("trades", Trade, topic="raw-trades")


def _keyed() -> Pipeline:
    return _events().partition("by-symbol", key="symbol")


def _windowed() -> Pipeline:
    return _keyed().window("1min", Tumbling("60s"), lateness="60s")


def _folded() -> Pipeline:
    return _windowed().fold("vwap", vwap=rpa.vwap("price", "size"), n=rpa.count())


def _names(fields: tuple[Field, ...]) -> list[str]:
    return [field.name for field in fields]


def test_the_pipeline_of_the_readme_becomes_a_plan() -> None:
    plan = (
        _windowed()
        .fold(
            "vwap",
            vwap=rpa.vwap("price", "size"),
            total_volume=rpa.sum("size"),
            trade_count=rpa.count(),
        )
        .sink("output", topic="vwap-results")
        .plan()
    )
    assert plan.source.time_field == "timestamp_ns"
    assert plan.source.topic == "raw-trades"
    (fold,) = plan.folds
    assert fold.row == (
        Field("symbol", String()),
        Field("window_start_ns", Int64()),
        Field("window_end_ns", Int64()),
        Field("vwap", Option(Float())),
        Field("total_volume", Int64()),
        Field("trade_count", Int64()),
    )
    assert fold.input == "trades"
    assert fold.identity == ("symbol", "window_start_ns", "window_end_ns")
    assert fold.window is not None
    assert fold.window.lateness_ns == 60 * 10**9
    (output,) = plan.outputs
    assert (output.name, output.of, output.topic) == ("output", "vwap", "vwap-results")
    assert output.fields == fold.row


def test_a_prefix_is_shared_without_being_changed() -> None:
    prefix = _events()
    first = prefix.derive("a", a=col("price") + 1).partition("p", key="symbol")
    second = prefix.derive("b", b=col("size") + 1)
    assert _names(prefix.fields) == ["symbol", "price", "size", "timestamp_ns", "venue"]
    assert _names(first.fields)[-1] == "a"
    assert _names(second.fields)[-1] == "b"


def test_every_step_in_every_stage_is_either_allowed_or_explained() -> None:
    verbs = {"source", "derive", "filter", "map", "flat_map", "partition"}
    verbs |= {"window", "fold", "finals", "distinct", "sink", "table", "versions", "join"}
    verbs |= {"join_asof", "join_interval", "ask", "scan"}
    everything = {(stage, verb) for stage in Stage for verb in verbs}
    assert set(TRANSITIONS) | set(REFUSALS) == everything
    assert not set(TRANSITIONS) & set(REFUSALS)


def test_a_second_fold_takes_the_result_rows_of_the_first() -> None:
    plan = (
        _folded()
        .derive("cents", cents=col("vwap") * 100)
        .partition("by-window", key=("window_start_ns",))
        .fold("portfolio", total=rpa.sum("cents"))
        .sink("per-symbol", of="vwap")
        .sink("total")
        .plan()
    )
    vwap, portfolio = plan.folds
    assert portfolio.input == "vwap"
    assert _names(vwap.row)[-1] == "cents"
    assert _names(portfolio.row) == ["window_start_ns", "total"]
    assert [output.of for output in plan.outputs] == ["vwap", "portfolio"]


def test_a_partition_may_have_the_name_of_a_fold_or_a_sink() -> None:
    keyed = _events().partition("by-symbol", key="symbol")
    plan = keyed.fold("n", n=rpa.count()).partition("n", key=()).fold("all", n=rpa.sum("n"))
    assert [one.name for one in plan.sink("by-symbol").plan().outputs] == ["by-symbol"]
    assert repr(plan) == "<Pipeline 'vwap-60s': trades > by-symbol > n > n > all>"


def test_candles_without_a_name_have_results_without_a_prefix() -> None:
    def row(pipeline: Pipeline) -> list[str]:
        return _names(pipeline.sink("out").plan().folds[0].row)

    of = rpa.ohlc("price")
    assert row(_keyed().fold("f", of, n=rpa.count())) == [
        "symbol", "open", "high", "low", "close", "n"
    ]  # fmt: skip
    assert row(_keyed().fold("f", p=of))[1:] == ["p_open", "p_high", "p_low", "p_close"]


def test_an_empty_key_after_a_fold_makes_one_total() -> None:
    plan = _folded().partition("all", key=()).fold("n", n=rpa.sum("n")).sink("out").plan()
    assert plan.folds[1].key == ()
    assert _names(plan.folds[1].row) == ["n"]


def _named(key: str) -> Pipeline:
    schema = Schema("odd", (Field(key, String()), Field("x", Int()), Field("op", Int())))
    return Pipeline("p").source("s", schema)


def _without(*, remove: Any = None, merge: Any = None) -> Aggregate:
    def add(state: int, value: int) -> int:
        return state ^ value

    functions = {"init": lambda: 0, "add": add, "result": lambda state: state}
    return rpa.custom("size", **functions, remove=remove, merge=merge, type=int, name="parity")


_numbers = itertools.count()


def _of(name: str) -> Pipeline:
    return Pipeline(name).source("trades", Trade)


def _twice(branch: Callable[[Pipeline], Pipeline]) -> Pipeline:
    """Write the same steps as two branches."""
    events = _of("p")
    return branch(events).also(branch(events))


def _other_steps() -> Pipeline:
    fold = _folded()
    return fold.sink("all").also(fold.filter("some", col("n") > 1).sink("few"))


def _many(count: int) -> Pipeline:
    pipeline = Pipeline("p")
    for number in range(count):
        pipeline = pipeline.source(f"s{number}", Trade).sink(f"o{number}")
    return pipeline


def _united(branches: Callable[[Pipeline, Pipeline], tuple[Pipeline, Pipeline]]) -> Pipeline:
    pipeline = Pipeline("p")
    sources = (pipeline.source(name, Trade) for name in ("trades", "other"))
    return rp.union("u", *branches(*sources))


MISTAKES: list[tuple[Any, str]] = [
    (lambda: Pipeline("p").sink("s"), "start with .source"),
    (lambda: _keyed().source("more", Trade), "add .fold(...) to this one first"),
    (
        lambda: _events().source("more", Trade).sink("s").plan(),
        "source 'trades': no step and no sink reads it: give it a .sink(name), or leave it out",
    ),
    (
        lambda: _events().filter("f", col("size") > 0).source("m", Trade).sink("s").plan(),
        "step 'f': nothing takes its rows: end its branch with .sink(name)",
    ),
    (lambda: _many(17), "a pipeline has at most 16 sources, not 17"),
    (lambda: rp.union("u", _events()), "union 'u': it unites two streams or more"),
    (lambda: rp.union("u", _events(), 3), "union 'u': it unites branches of a pipeline, not 3"),
    (lambda: rp.union("u", Pipeline("p"), _events()), "start it with .source"),
    (lambda: rp.union("u", _events(), _keyed()), "put .partition(...) after it"),
    (lambda: rp.union("u", _events(), _folded()), "'vwap' is a table: unite the events before"),
    (lambda: rp.union("u", _events(), _events()), "source named 'trades': rename one, or begin"),
    (lambda: rp.union("u", _events(), _of("q")), "union 'u': 'q' is another pipeline"),
    (lambda: _united(lambda a, b: (a, a)), "union 'u': 'trades' is named twice: leave one out"),
    (
        lambda: _united(lambda a, b: (a, b.derive("d", more=col("size")))),
        "union 'u': 'd' alone has the field 'more': give all of them the same fields",
    ),
    (
        lambda: _united(lambda a, b: (a.derive("d", more=col("size")), b)),
        "union 'u': 'other' has no field 'more': give all of them the same fields",
    ),
    (
        lambda: _united(
            lambda a, b: (a.derive("d", x=col("size")), b.derive("e", x=col("symbol")))
        ),
        "union 'u': the field 'x' is string in 'e', and int before: give all of them",
    ),
    (lambda: _united(lambda a, b: (a.sink("s"), b.sink("s"))), "two steps are called 's'"),
    (
        lambda: (
            _united(lambda a, b: (a, b))
            .partition("k", key="symbol")
            .window("w", Tumbling("1s"), trigger=OnCount(3))
        ),
        "which partial results OnCount(count=3) shows would depend on the order",
    ),
    (lambda: _events().plan(), "ends with rows of events: end it with .sink"),
    (lambda: _events().sink("s").filter("f", col("size") > 0).plan(), "end it with .sink"),
    (lambda: _events().sink("s").sink("s"), "since sinks share one namespace"),
    (lambda: _events().sink("s", key="symbl"), "Did you mean 'symbol'?"),
    (lambda: _events().sink("s", key=("venue", "venue")), "twice"),
    (lambda: _events().sink("s", key="price"), "is a float"),
    (lambda: _folded().sink("s", key="symbol"), "have their key already"),
    (lambda: _folded().flat_map("m", list, into=Trade), "put .flat_map(...) before the fold"),
    (lambda: _keyed().flat_map("m", list, into=Trade), "could change the key"),
    (lambda: _events().flat_map("m", 3, into=Trade), "takes a function"),
    (lambda: _events().also(3), "takes another branch"),
    (lambda: _events().sink("a").also(_events()), "the branch to 'trades' ends with rows of"),
    (lambda: _folded().also(_events().sink("a")), "the branch to 'vwap' ends with result rows"),
    (lambda: _events().sink("a").also(_events().sink("b")), "a different source named"),
    (lambda: _events().sink("a").also(_of("q").sink("b")), "'q' is another pipeline"),
    (lambda: _twice(lambda events: events.sink("s")), "two steps are called 's'"),
    (lambda: _twice(lambda e: e.filter("f", col("size") > 0).sink("s")), "two steps are called"),
    (lambda: _twice(lambda e: e.sink(f"s{next(_numbers)}", topic="t")), "writes to the topic 't'"),
    (_other_steps, "other steps on the results of 'vwap'"),
    (lambda: _keyed().sink("s"), "add .fold"),
    (lambda: _events().fold("f", n=rpa.count()), "add .partition"),
    (lambda: _events().window("w", Tumbling("1s")), "add .partition"),
    (lambda: _folded().window("w", Tumbling("1s")), "window_start_ns"),
    (lambda: _folded().sink("s").filter("f", col("n") > 1), "before .sink"),
    (lambda: _folded().fold("again", n=rpa.count()), "add .partition"),
    (lambda: _keyed().map("m", lambda row: row, into=Trade), "could change the key"),
    (lambda: _keyed().partition("p2", key="venue"), "several fields"),
    (lambda: _windowed().window("w2", Tumbling("1s")), "a fold has one"),
    (lambda: _events().filter("trades", col("size") > 0), "sources, steps and folds share one"),
    (
        lambda: _keyed().fold("f", n=rpa.count()).partition("by-symbol", key="symbol"),
        "partitions share one namespace",
    ),
    (lambda: Pipeline("has space"), "a name is letters"),
    (lambda: _events().partition("", key="symbol"), "a name is letters"),
    (lambda: _events().partition("p", key="symbl"), "Did you mean 'symbol'?"),
    (lambda: _events().partition("p", key="price"), "is a float"),
    (lambda: _events().partition("p", key=()), "name a field"),
    (lambda: _events().partition("p", key=("symbol", "symbol")), "twice"),
    (lambda: _events().partition("p", key=col("size") + 1), "with .derive"),
    (lambda: _keyed().fold("f"), "it computes nothing"),
    (lambda: _keyed().fold("f", n=3), "expected an aggregate"),
    (lambda: _keyed().fold("f", 3), "expected an aggregate"),
    (lambda: _keyed().fold("f", rpa.count()), "name it, as in count=rp.count()"),
    (lambda: _keyed().fold("f", rpa.ohlc("price"), rpa.ohlc("size")), "name one of the two"),
    (lambda: _keyed().fold("f", rpa.ohlc("price"), open=rpa.count()), "field 'open' already"),
    (lambda: _keyed().fold("f", n=rpa.sum("symbol")), "n: "),
    (lambda: _keyed().fold("f", n=rpa.sum("sise")), "Did you mean 'size'?"),
    (lambda: _keyed().fold("f", symbol=rpa.count()), "a field 'symbol' already"),
    (lambda: _windowed().fold("f", window_end_ns=rpa.count()), "already"),
    (lambda: _events().derive("d"), "it adds nothing"),
    (lambda: _events().derive("d", price=col("size") + 1), "a field 'price' already"),
    (lambda: _events().derive("d", x="price"), "rp.col('price')"),
    (lambda: _events().derive("d", x=col("symbol") + 1), "needs a text; use .cast(str)"),
    (lambda: _events().filter("f", col("size") + 1), "not a condition"),
    (lambda: _events().filter("f", col("symbol")), "not a condition"),
    (lambda: _events().filter("f", True), "the plain value True"),
    (lambda: _folded().sink("s", of="vwp"), "there is no fold 'vwp'"),
    (lambda: _folded().sink("a", topic="t").sink("b", topic="t"), "another sink"),
    (lambda: _folded().plan(), "end it with .sink"),
    (lambda: Pipeline("p").plan(), "end it with .sink"),
    (lambda: Pipeline("p").source("s", Trade, time="price"), "must be an int"),
    (lambda: Pipeline("p").source("s", Trade, time="at"), "there is no field 'at'"),
    (lambda: Pipeline("p").source("s", Trade, out_of_order="1 parsec"), "number and a unit"),
    (lambda: _keyed().window("w", Sliding("1s", "2s")), "exceeds size"),
    (lambda: _keyed().window("w", "60s"), "assigner must be rp.Tumbling"),
    (lambda: _events().map("m", 3, into=Trade), "takes a function"),
    (lambda: _folded().map("m", lambda row: row, into=Trade), "window_start_ns"),
    (lambda: _named("k").partition("p", key="op"), "cannot have a field 'op'"),
    (lambda: _keyed().fold("f", op=rpa.count()), "cannot have a field 'op'"),
    (lambda: _events().sink("s", of="f"), "there is no fold 'f': the folds are none"),
    (lambda: _named("k").sink("events"), "no field 'op' of events"),
    (lambda: _folded().derive("d", op=col("n") + 1), "cannot have a field 'op'"),
    (
        lambda: (
            _keyed()
            .fold("f", n=rpa.count())
            .map("m", lambda row: row, into=Schema("m", (*_SYMBOL, Field("op", Int()))))
        ),
        "cannot have a field 'op'",
    ),
    (lambda: _named("ripple.op").partition("p", key="ripple.op"), "field 'ripple.op': ripple."),
    (lambda: _named("ripple.x").partition("p", key="ripple.x"), "field 'ripple.x': ripple."),
    (lambda: _keyed().fold("f", ripple=rpa.count()), "field 'ripple': ripple."),
    (
        lambda: _named("n.count").partition("p", key="n.count").fold("f", n=rpa.count()),
        "called like state of the aggregate 'n'",
    ),
    (
        lambda: (
            _keyed().window("w", Session("1s")).fold("f", n=rpa.count(), odd=_without(merge=None))
        ),
        "fold 'f': odd: parity(size) cannot be merged, but sessions are",
    ),
    (
        lambda: (
            _keyed()
            .fold("f", size=rpa.sum("size"))
            .partition("p", key=())
            .fold("g", odd=_without())
        ),
        "fold 'g': odd: parity(size) cannot retract: give it remove=",
    ),
]


@pytest.mark.parametrize(("mistake", "told"), MISTAKES)
def test_a_mistake_is_told_when_it_is_written(mistake: Any, told: str) -> None:
    with pytest.raises(PlanError) as caught:
        mistake()
    assert told in str(caught.value)


def test_sessions_cannot_be_grouped_by_their_window() -> None:
    sessions = _keyed().window("s", Session("30s")).fold("f", n=rpa.count())
    with pytest.raises(PlanError, match="sessions merge"):
        sessions.partition("p", key="window_start_ns")
    assert sessions.partition("p", key="symbol").fold("g", n=rpa.sum("n")).sink("o").plan()


def test_windows_need_a_time_field() -> None:
    schema = Schema("plain", (Field("key", String()), Field("x", Int())))
    keyed = Pipeline("p").source("s", schema).partition("k", key="key")
    assert keyed.fold("f", n=rpa.count()).sink("o").plan().source.time_field is None
    with pytest.raises(PlanError, match="no time field"):
        keyed.window("w", Tumbling("60s"))


def test_an_optional_key_is_refused_until_it_is_filled() -> None:
    schema = Schema("plain", (Field("key", String(), optional=True),))
    source = Pipeline("p").source("s", schema)
    with pytest.raises(PlanError, match="fill_null"):
        source.partition("k", key="key")
    filled = source.derive("d", known=col("key").fill_null("?"))
    assert filled.partition("k", key="known")


def test_events_may_have_a_field_that_result_rows_may_not() -> None:
    changes = _named("k").filter("some", col("op") > 0).partition("p", key="k")
    assert changes.fold("f", n=rpa.sum("op")).sink("o").plan()
    renamed = _named("k").derive("r", kind=col("op")).partition("p", key="kind")
    assert renamed.fold("f", n=rpa.count()).sink("o").plan()


def test_a_users_aggregate_without_merge_serves_in_windows_that_do_not_merge() -> None:
    for assigner in (Tumbling("1s"), Sliding("2s", "1s")):
        assert _keyed().window("w", assigner).fold("f", odd=_without())
    joined = _without(merge=lambda one, other: one ^ other)
    assert _keyed().window("w", Session("1s")).fold("f", odd=joined)
