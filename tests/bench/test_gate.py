"""The regression gate: what it decides, and that all it compares runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.against import GateError, Turns, checked_out
from bench.gate import REGRESSION_RATIO, compared, report
from bench.workloads import WORKLOADS
from tests.bench.command import ROOT, bench

TITLES = {"before": "abc1234", "now": "this tree"}


def test_the_least_of_the_runs_counts_however_slow_the_others_were() -> None:
    found = compared("csv", [0.30, 0.10, 0.95], [0.12, 9.0, 0.11])
    assert found.ratio == pytest.approx(1.1)
    assert not found.has_failed


def test_the_gate_stays_shut_beyond_its_ratio_and_not_at_it() -> None:
    at, beyond = 0.1 * REGRESSION_RATIO, 0.1001 * REGRESSION_RATIO
    assert not compared("csv", [0.1], [at]).has_failed
    assert compared("csv", [0.1], [beyond]).has_failed
    assert compared("csv", [0.1], [at], limit=1.5).has_failed
    assert not compared("csv", [0.1], [0.01]).has_failed


def test_workload_unknown_to_the_older_commit_is_skipped_and_reported() -> None:
    found = compared("csv", [], [5.0], why="ImportError: no csv")
    assert (found.ratio, found.has_failed) == (None, False)
    assert found.word == "skipped: ImportError: no csv"


def test_the_table_names_what_failed_what_is_slower_and_what_was_skipped() -> None:
    found = [
        compared("worse", [0.1], [0.25]),
        compared("slower", [0.1], [0.12]),
        compared("new", [], [0.1], why="KeyError: 'new'"),
        compared("faster", [0.1], [0.05]),
    ]
    assert report(found, TITLES).split("\n") == [
        "workload  abc1234      this tree       ratio",
        "worse         100  ms        250  ms  2.50 x  FAILED: more than 2 times",
        "slower        100  ms        120  ms  1.20 x  slower",
        "new                          100  ms          skipped: KeyError: 'new'",
        "faster        100  ms      50.00  ms   0.5 x",
    ]


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_workload_runs_again_and_again(name: str) -> None:
    run = WORKLOADS[name].begin(128 * 200 if name.startswith("partitions") else 2_000)
    run()
    run()


def test_a_tree_runs_the_workloads_of_this_one_with_its_own_ripple(tmp_path: Path) -> None:
    package = tmp_path / "ripple"
    package.mkdir()
    (package / "__init__.py").write_text("Pipeline = None\n")
    with Turns(tmp_path, "vwap") as turns:
        assert turns.refusal == "AttributeError: module 'ripple' has no attribute 'record'"
    with Turns(ROOT, "one-change") as turns:
        assert turns.refusal == ""
        assert turns.run() > 0


def test_a_commit_that_is_not_there_is_an_error_and_no_figure() -> None:
    with pytest.raises(GateError, match="no commit 'no-such'"), checked_out("no-such"):
        pass
    done = bench("--against", "no-such")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("bench: no commit 'no-such'")


def test_names_are_those_of_workloads() -> None:
    done = bench("--against", "HEAD", "memory")
    assert done.returncode == 2
    assert "no benchmark memory; there are vwap, windows" in done.stderr
