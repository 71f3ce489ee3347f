"""``ripple cluster`` where something is wrong; what it does is tried with real coordinators."""

from __future__ import annotations

import pytest

from coordinator.status import Status
from ripple.cli.cluster_status import print_status
from tests.cli.processes import RIPPLE, Ended, run
from tests.coordinator.test_messages import STATUS


def cluster(*arguments: str) -> Ended:
    return run(RIPPLE, "cluster", *arguments)


def test_nobody_answers() -> None:
    ended = cluster("status", "--coordinator", "localhost:1,127.0.0.1:2")
    assert ended.code == 2
    assert ended.out == ""
    assert ended.only_line.startswith("ripple: no coordinator answers: localhost:1: ")
    assert "127.0.0.1:2: " in ended.only_line


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["status", "--coordinator", "node-1"], "node-1:9200 is not on this machine"),
        (["status", "--coordinator", "a:b:99999"], "is no address"),
        (["status", "--coordinator", ","], "names nobody"),
        (["status", "--tls-key", "k"], "TLS needs --tls-certificate"),
        (["freeze"], "the following arguments are required: --reason"),
        (["pin", "8192", "w1", "--reason", "r"], "partitions are 0 to 8191 at most"),
        (["pin", "-1", "w1", "--reason", "r"], "--reason"),
        (["melt"], "invalid choice: 'melt'"),
    ],
)
def test_what_is_wrong_is_named(arguments: list[str], problem: str) -> None:
    ended = cluster(*arguments)
    assert ended.code == 1
    assert problem in ended.err or arguments[1:2] == ["-1"]


def test_status_is_told_in_tables(capsys: pytest.CaptureFixture[str]) -> None:
    print_status("localhost:9200", STATUS)
    assert (
        capsys.readouterr().out
        == """\
Coordinator  localhost:9200 (replica c1, hears c2)
Workers      1/2 active
Partitions   7 of 8 assigned
Version      9: w2 joins

WORKER  STANDING            SILENT  LOAD  PARTITIONS  SINCE      ADDRESSES
w1      active              0.2 s   0.00  4           version 3  health=w1:9100
w2      suspected, leaving  4.1 s   -     3           version 9

MOVES  FROM  TO    PHASE
2      w1/0  w2/0  warming

PINNED  TO  WHY
0       w1  its cache

WAITS TO JOIN  WHY
w3             joins soon
! w2 is suspected: silent for 4 s
"""
    )


def test_status_of_an_empty_cluster_is_short(capsys: pytest.CaptureFixture[str]) -> None:
    print_status("h:1", Status("c", 0, "", "why", 128, 128, (), (), (), (), (), ()))
    assert (
        capsys.readouterr().out
        == """\
Coordinator  h:1 (replica c, hears no other)
Workers      0/0 active
Partitions   0 of 128 assigned
Version      none yet
Frozen       why
"""
    )
