"""An option of a command on Spark that would mean nothing is refused before a JVM is started."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from ripple.cli.lib.path_options import an_address
from ripple.cli.spark.watch import _Report
from ripple.core.errors import InputError
from ripple.spark.finding import Finding
from ripple.spark.sampling import Sample
from ripple.spark.verdict import Verdict
from tests.cli.processes import ripple

RUN = ("run", "x.py", "--source", "log:a/b", "--sink", "log:a/c", "--store", "s")
TRADES = "AAPL,150.25,200,1709000000000000000,XNAS\n" * 3
VALIDATE = ("validate", "x.py", "--source", "log:a/b", "--against", "log:a/c")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((*RUN, "--every", "5 seconds"), "--every goes with --follow"),
        ((*VALIDATE, "--sample", "1%"), "--sample goes with --watch"),
        ((*VALIDATE, "--metrics", "127.0.0.1:0"), "--metrics goes with --watch"),
        ((*VALIDATE, "--watch", "--crashes", "9"), "--crashes does not go with --watch"),
        ((*VALIDATE, "--watch", "--html", "v.html"), "--html does not go with --watch"),
        ((*VALIDATE, "--watch", "--from", "17"), "--from does not go with --watch"),
    ],
)
def test_an_option_that_would_mean_nothing_is_named(arguments: tuple[str, ...], why: str) -> None:
    ended = ripple("spark", *arguments)
    assert ended.code == 1
    assert ended.only_line.startswith(f"ripple: {why}")


@pytest.mark.parametrize("address", ["9302", "localhost", "x:y", "127.0.0.1:99999", "[]:9302", ":"])
def test_metrics_at_what_is_no_address_are_refused(address: str) -> None:
    ended = ripple("spark", *VALIDATE, "--watch", "--metrics", address)
    assert ended.code == 1
    assert f"--metrics: {address!r} is no address: HOST:PORT, or :PORT" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("command", ["replay", "validate"])
@pytest.mark.parametrize("bounds", [("--from", "2", "--to", "1"), ("--from", "1", "--to", "1")])
def test_a_range_with_nothing_in_it_is_refused(
    command: str, bounds: tuple[str, ...], tmp_path: Path
) -> None:
    trades = tmp_path / "trades.csv"
    trades.write_text(TRADES)
    only = ("--digest-only",) if command == "replay" else ()
    given = ("examples/vwap.py", "--source", str(trades), *bounds, *only)
    ended = ripple("spark", command, *given)
    assert (ended.code, ended.out) == (1, "")
    said = f"ripple: {trades} has no records in the range {' '.join(bounds)}"
    assert ended.only_line == said


@pytest.mark.parametrize("host", ["192.0.2.1", "one..two"])
def test_metrics_where_nobody_can_listen_are_refused(host: str, tmp_path: Path) -> None:
    trades = tmp_path / "trades.csv"
    trades.write_text(TRADES)
    watch = ("--source", str(trades), "--watch", "--metrics", f"{host}:0")
    ended = ripple("spark", "validate", "examples/vwap.py", *watch)
    assert ended.code == 1
    assert ended.only_line.startswith(f"ripple: --metrics {host}:0: ")


def test_metrics_without_a_host_are_for_this_machine_only() -> None:
    assert an_address(":9302") == "127.0.0.1:9302"
    assert an_address("[::1]:0") == "[::1]:0"


@dataclass
class Rounds:
    """What rounds of a watch come to, in turn: rows compared, or why it came to nothing."""

    results: list[int | str]
    sample: Sample = Sample(2, 0)  # noqa: RUF009 - frozen

    def round(self) -> Verdict:
        result = self.results.pop(0)
        if isinstance(result, str):
            raise InputError(result)
        finding = Finding("outputs", "out in log:o/0", result, 10, note="it began from history")
        return Verdict.of("p", "hash", "log:t", [finding.packet().about])


@pytest.mark.parametrize(
    ("results", "code", "told"),
    [
        ([3, 0], 0, ["3 compared, all equal", "nothing of the output is in it"]),
        ([0, 0], 1, ["nothing of the output is in it", "ripple: nothing was compared"]),
        ([3, "the log is gone"], 1, ["all equal", "was not compared: the log is gone"]),
        (["the log is gone"], 1, ["was not compared: the log is gone"]),
    ],
)
def test_a_watch_whose_rounds_are_over_does_not_hold_where_nothing_was_compared(
    results: list[int | str], code: int, told: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    watch, watching = _Report("p", "text"), Rounds([*results])
    for _ in results:
        watch.round(watching)  # type: ignore[arg-type] # its rounds, without Spark
    assert watch.code(is_over=False) == 0  # a signal ended it: more rounds might have followed
    assert watch.code(is_over=True) == code
    said = capfd.readouterr().err
    assert all(one in said for one in told), said
    assert said.count("began from history") <= 1


@pytest.fixture
def market(tmp_path: Path) -> Path:
    """Return the file of a pipeline of two sources."""
    file = tmp_path / "market.py"
    file.write_text(
        "import ripple as rp\n"
        "from ripple.connectors.files.csv.format import TRADE_SCHEMA\n"
        "one = rp.Pipeline('market').source('trades', TRADE_SCHEMA).sink('out')\n"
        "pipeline = one.also(rp.Pipeline('market').source('quotes', TRADE_SCHEMA).sink('more'))\n"
    )
    return file


def test_several_sources_are_refused_by_a_watch_before_any_is_opened(market: Path) -> None:
    rest = ("--watch", "--against", "out=log:a/out")
    ended = ripple("spark", "validate", market, "--source", "trades=log:no/where", *rest)
    assert ended.code == 1
    assert ended.only_line == (
        "ripple: pipeline 'market' has the sources trades, quotes, and a watch on Spark takes "
        "pipelines of one: run it in one process, with ripple run or rp.run, or on a cluster; "
        "ripple spark replay, backfill, validate and run read several"
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("trades={0}",), "source 'quotes' is not given: the pipeline reads trades, quotes"),
        (("{0}",), "say which one {0} is, as in --source trades={0}"),
        (("bids={0}",), "there is no source 'bids': the pipeline reads trades, quotes"),
        (("trades={0}", "quotes={0}"), "sources 'trades' and 'quotes' read the same records"),
        (("trades={0}", "quotes=log:no/where"), "cannot read log:no/where"),
    ],
)
def test_a_replay_of_several_sources_says_what_is_wrong(
    given: tuple[str, ...], told: str, market: Path, tmp_path: Path
) -> None:
    file = tmp_path / "a.csv"
    file.touch()
    sources = [part for one in given for part in ("--source", one.format(file))]
    ended = ripple("spark", "replay", market, *sources, "--digest-only")
    assert ended.code == 1
    assert told.format(file) in ended.only_line
