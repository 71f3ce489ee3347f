"""A test of the rules: a right connector breaks none, a bad one exactly the one that it is for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ripple.connectors.connector import Connector
from ripple.core.errors import ConnectorError
from ripple.task import retrying_inputs
from ripple.testing import sink_suite, source_suite
from ripple.testing.connectors import inputs_rules, outside, sink_rules, source_rules
from tests.connectors.contract import bad

FEW = 60  # records: more than three blocks of the bad connectors
LEFT = ("closing_at_any_time_leaves_nothing", "inputs_closed_at_any_time_leave_nothing")
AHEAD = ("read_ahead_is_bounded", "inputs_hold_few_unread_records")


@pytest.fixture
def hasty(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a bad connector leaves, it leaves for good: nobody need wait until it is gone."""
    if rule in LEFT:
        monkeypatch.setattr(outside, "PATIENCE_S", 0.1)


@pytest.fixture
def short(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An input is long only where reading ahead is what a bad connector does.

    Where it is none, it is read from few of its offsets.
    """
    if rule not in AHEAD:
        monkeypatch.setattr(source_rules, "LONG_ROWS", 100)
        monkeypatch.setattr(inputs_rules, "LONG_ROWS", 100)
        monkeypatch.setattr(source_rules, "ROWS", FEW)
        monkeypatch.setattr(inputs_rules, "ROWS", FEW)


@pytest.fixture
def seldom_killed(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer is killed at each call only where that finds out a bad connector."""
    if "killed_writer" not in rule:
        monkeypatch.setattr(sink_rules, "CALLS", (3, 4))


@pytest.fixture(autouse=True)
def told_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs that wait say so at once, before their pauses are long."""
    monkeypatch.setattr(retrying_inputs, "EMIT_FIRST_S", 0.05)


def broken(suite: type, folder: Path) -> list[str]:
    """The rules that fail."""
    found = []
    for name, test in vars(suite).items():
        if name.startswith("test_"):
            (folder / name).mkdir(parents=True)
            try:
                test(None, folder / name)
            except AssertionError:
                found.append(name.removeprefix("test_"))
    while bad.KEPT:
        bad.KEPT.pop().close()
    return found


def source(kind: type) -> type:
    return source_suite(bad.connector(kind, "source"), bad.put)


def inputs(kind: type) -> type:
    return source_suite(
        bad.connector(kind, "continued_source"), bad.put, changes=bad.CHANGES, away=bad.away
    )


def sink(kind: type, **how: Any) -> type:
    use = "sink" if how.get("plain") else "continued_sink"
    if not how:
        how = {"changes": {"removed": lambda folder: (folder / "out").unlink()}}
    return sink_suite(bad.connector(kind, use), lambda folder: str(folder / "out"), bad.read, **how)


TestGoodSource = source(bad.GoodSource)
TestGoodInputs = inputs(bad.GoodInputs)
TestGoodSink = sink(bad.GoodSink)
TestWholeFile = sink(bad.WholeFile, plain=True)
TestAtLeastOnce = sink(bad.AtLeastOnce, once=False)


@pytest.mark.usefixtures("hasty", "short")
@pytest.mark.parametrize(("kind", "rule"), bad.SOURCES.items())
def test_bad_source_breaks_one_rule(kind: type, rule: str, tmp_path: Path) -> None:
    assert broken(source(kind), tmp_path) == [rule]


@pytest.mark.usefixtures("hasty", "short")
@pytest.mark.parametrize(("kind", "rule"), bad.INPUTS.items())
def test_bad_inputs_break_one_rule(kind: type, rule: str, tmp_path: Path) -> None:
    assert broken(inputs(kind), tmp_path) == [rule]


@pytest.mark.usefixtures("hasty", "seldom_killed")
@pytest.mark.parametrize(("kind", "rule"), bad.SINKS.items())
def test_bad_sink_breaks_one_rule(kind: type, rule: str, tmp_path: Path) -> None:
    assert broken(sink(kind), tmp_path) == [rule]


def test_bad_weaker_sinks_break_one_rule(tmp_path: Path) -> None:
    plain = broken(sink(bad.AppearsAtOnce, plain=True), tmp_path / "plain")
    assert plain == ["a_failed_run_leaves_the_old_output"]
    weaker = broken(sink(bad.LosesSome, once=False), tmp_path / "weaker")
    assert weaker == ["a_killed_writer_loses_nothing"]


def test_every_rule_has_a_bad_connector() -> None:
    rules = {
        name.removeprefix("test_")
        for suite in (TestGoodSource, TestGoodInputs, TestGoodSink, TestWholeFile, TestAtLeastOnce)
        for name in vars(suite)
        if name.startswith("test_")
    }
    weaker = {"a_failed_run_leaves_the_old_output", "a_killed_writer_loses_nothing"}
    assert rules == {*bad.SOURCES.values(), *bad.INPUTS.values(), *bad.SINKS.values(), *weaker}


def test_unsupported_uses_have_no_suite() -> None:
    nothing = Connector(scheme="none", form="none:")
    with pytest.raises(ConnectorError, match="'none' is no source"):
        source_suite(nothing, bad.put)
    with pytest.raises(ConnectorError, match="'none' has no such sink"):
        sink_suite(nothing, str, bad.read)
