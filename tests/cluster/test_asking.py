"""Asking a cluster that runs, as people do; and while a worker dies."""

from __future__ import annotations

import asyncio
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.cli.processes import RIPPLE, ROOT
from tests.cluster.chaos import append, job_of
from tests.cluster.settled import settled
from tests.cluster.up import Up
from tests.exchange.plain_peer import PlainPeer, Refused, connected
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.services

PARTITIONS = 4


class Asked:
    """A cluster of three workers, over a topic, and commands that are put to it."""

    def __init__(self, folder: Path) -> None:
        self.job = job_of("totals", folder, PARTITIONS)
        self.steps = self.batches = 0
        self.up = Up(self.job, "--workers", "3")
        where = self.up.says(r"listens at ([0-9.:]+), /health")[1]
        asyncio.run(settled(where, 3))
        self.append(3)
        self.environment = {**os.environ, "RIPPLE_COORDINATOR": where, "PYTHONWARNINGS": "error"}

    def append(self, batches: int) -> None:
        """Write some more, into all partitions."""
        append(self.job.source, PARTITIONS, step=self.steps, batches=batches)
        self.steps += 1
        self.batches += batches

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command."""
        return subprocess.Popen(
            [*RIPPLE, *arguments],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def say(self, *arguments: str, code: int = 0) -> str:
        """Return what a command prints."""
        started = self.start(*arguments)
        out, err = started.communicate(timeout=PATIENCE_S)
        assert started.returncode == code, (out, err)
        return out if not code else err

    def value(self, *arguments: str) -> Any:
        """Return what a command says in JSON."""
        return json.loads(self.say(*arguments, "--format", "json"))

    def until(self, sql: str, wanted: Any) -> Any:
        """Ask until the answer is as wanted; return all of it."""
        until_s = time.monotonic() + 2 * PATIENCE_S
        while True:
            asking = self.start("query", sql, "--format", "json")
            out, said = asking.communicate(timeout=PATIENCE_S)
            if asking.returncode == 0 and json.loads(out)["rows"] == wanted:
                return json.loads(out)
            # Partitions of a worker that has died have no answer until others have them.
            assert asking.returncode == 0 or "no answer within" in said, said
            assert time.monotonic() < until_s, (out, said, self.up.said[-3000:])
            time.sleep(0.2)

    def kill_a_worker(self) -> None:
        """Kill the supervisor of one of them, with which its engine ends."""
        number = int(self.up.says(r"worker-1 +\| process (\d+)")[1])
        os.kill(number, signal.SIGKILL)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    made = Asked(tmp_path_factory.mktemp("asked"))
    try:
        made.up.says(r"12,000 of 12,000 records")
        yield made
    finally:
        made.up.process.send_signal(signal.SIGINT)
        made.up.ended()


def test_a_query_is_at_one_stated_cut(asked: Asked) -> None:
    found = asked.until('SELECT sum(trades)::BIGINT AS n FROM "out"', [{"n": 12_000}])
    assert found["format_version"] == 1
    assert {part: one["cut"] for part, one in found["cut"]["out"].items()} == {
        str(number): {f"trades/{number}": 3000} for number in range(PARTITIONS)
    }
    rows = asked.value("query", "SELECT symbol, vwap, trades FROM out ORDER BY symbol")["rows"]
    made = [json.loads(row) for row in asked.job.tables_made()[0].rows]
    wanted = [{name: row[name] for name in ("symbol", "vwap", "trades")} for row in made]
    assert rows == sorted(wanted, key=lambda row: str(row["symbol"]))


def test_a_query_that_does_not_fit_is_refused_in_a_line(asked: Asked) -> None:
    for sql, why in (
        ("SELECT * FROM read_csv('/etc/passwd')", "file system operations are disabled"),
        ("SELECT * FROM nothing", "no output nothing"),
        ("SELECT 1; SELECT 2", "give one statement"),
        ("SET memory_limit='1TB'", "outputs are read-only"),
        ("SHOW TABLES", "ripple query --list"),
    ):
        said = asked.say("query", sql, code=1)
        assert why in said, said
        assert len(said.splitlines()) == 1, said
    for column, kind in (("[1, 2]", "list<l: int32>"), ("INTERVAL 1 MONTH", "month_day")):
        said = asked.say("query", f"SELECT 1 AS n, {column} AS x", "--format", "csv", code=1)
        assert said.startswith(f"ripple: CSV has no form for the column x ({kind}"), said


def test_names_are_found_in_any_case_and_json_has_no_nan(asked: Asked) -> None:
    found = asked.value("query", "SELECT count(*) > 0 AS n, 'NaN'::DOUBLE AS x FROM OUT")
    assert found["rows"] == [{"n": True, "x": None}]
    assert list(found["cut"]) == ["out"]


def test_outputs_are_listed(asked: Asked) -> None:
    listed = asked.value("query", "--list")["outputs"]
    assert [one["output"] for one in listed] == ["decades", "out", "portfolio"]
    assert "vwap: double" in listed[1]["columns"]
    said = asked.say("debug", "tap", "--output", "ot", code=1)
    assert said.splitlines()[-1] == "ripple: no output 'ot': did you mean out?"
    said = asked.say("debug", "tap", "--output", "out", "--key", "symbl=A", code=1)
    assert said.splitlines()[-1] == "ripple: --key symbl=A: the key is symbol"


def test_the_graph_of_a_worker_has_counters(asked: Asked) -> None:
    asked.until('SELECT sum(trades)::BIGINT AS n FROM "out"', [{"n": 12_000}])
    found = asked.value("inspect", "graph")
    parts = {one["partition"]: one for worker in found["workers"] for one in worker["partitions"]}
    assert sorted(parts) == list(range(8))
    source, fold, output = parts[0]["nodes"]
    assert (source["kind"], source["rows_in"]) == ("source", 3000)
    assert [source[name] for name in ("very_late", "future", "refused")] == [0, 0, 0]
    assert (fold["name"], fold["rows_in"]) == ("vwap", 3000)
    assert fold["recomputed"] == fold["rows_out"] + fold["cutoffs"]
    assert output["name"] == "out"
    assert output["keys"] == fold["keys"] > 0
    one = asked.say("inspect", "graph", "--worker", "worker-1")
    assert one.startswith("((format_version 1)(workers(((worker worker-1)(pipeline totals)")
    dot = asked.say("inspect", "graph", "--partition", "0", "--format", "dot")
    assert 'p0_1 [label="fold: vwap\\nrows_in 3000' in dot
    assert "p0_0 -> p0_1;" in dot
    assert "no worker nobody" in asked.say("inspect", "graph", "--worker", "nobody", code=1)


def test_schemas_edges_partitions_and_metrics(asked: Asked) -> None:
    said = asked.say("inspect", "schemas", "--verbose")
    title, field = (
        r"  trade/v1  fp=[0-9a-f]{16}  fields=5",
        r"    symbol        : String    \(required\)",
    )
    assert re.search(f"{title}\n{field}", said)
    edges = asked.value("inspect", "edges")["edges"]
    assert [(one["of"], one["to"], one["kind"]) for one in edges] == [
        ("vwap", "by-class", "row"),
        ("by-class", "sums", "partial"),
    ]
    parts = asked.value("inspect", "partitions")["partitions"]
    assert [one["stage"] for one in parts] == ["main"] * 4 + ["stage-1"] * 3 + ["stage-2"]
    assert all(one["owner"] and one["keys"] > 0 for one in parts[:4])
    metrics = asked.say("inspect", "metrics", "--worker", "worker-2")
    assert "# TYPE ripple_graph_stabilizations_total counter" in metrics


def test_top_and_status_say_who_is_there(asked: Asked) -> None:
    once = json.loads(asked.say("top", "--once", "--format", "json"))
    assert (once["active"], once["members"], once["unowned"]) == (3, 3, 0)
    assert [one["worker"] for one in once["workers"]] == ["worker-1", "worker-2", "worker-3"]
    assert all(one["records_per_s"] is not None for one in once["workers"])
    text = asked.say("top", "--once")
    assert text.startswith("3/3 workers active\n")
    assert "\x1b" not in text
    status = asked.value("status")
    assert asked.value("cluster", "status").keys() == status.keys()
    assert status["format_version"] == 1
    assert len(status["owners"]) == 8
    assert asked.say("status", "--format", "sexp").startswith("((format_version 1)(coordinator ")
    alias = json.loads(asked.say("status", "--json"))
    assert alias["version"] == status["version"]


def test_top_draws_on_a_terminal(asked: Asked) -> None:
    read, write = os.openpty()
    top = subprocess.Popen(
        [*RIPPLE, "top", "--interval", "0.2"],
        cwd=ROOT,
        env={**asked.environment, "TERM": "xterm"},
        stdout=write,
        stdin=write,
    )
    os.close(write)
    shown, until_s = b"", time.monotonic() + PATIENCE_S
    while shown.count(b"\x1b[H") < 3:
        assert time.monotonic() < until_s, shown
        shown += os.read(read, 4096)
    top.send_signal(signal.SIGINT)
    assert top.wait(PATIENCE_S) == 130
    os.close(read)
    assert b"\x1b[32m3/3 workers active" in shown


def test_dry_run_shows_moves_and_moves_nothing(asked: Asked) -> None:
    before = asked.value("status")
    would = asked.value("drain", "worker-1", "--reason", "to see", "--dry-run")
    mine = [n for n, one in enumerate(before["owners"]) if one["owner"] == "worker-1/0"]
    assert [int(re.findall(r"\d+", line)[0]) for line in would["changes"]] == mine
    assert asked.value("status")["version"] == before["version"]
    assert "no partition 99" in asked.say(
        "move", "99", "worker-1", "--reason", "r", "--dry-run", code=1
    )


def test_a_move_is_waited_for(asked: Asked) -> None:
    owner = asked.value("status")["owners"][0]["owner"]
    other = "worker-2" if owner == "worker-1/0" else "worker-1"
    within = ("--wait", "--timeout", f"{PATIENCE_S:.0f}")
    asked.say("move", "0", other, "--reason", "to see", *within)
    assert asked.value("status")["owners"][0]["owner"] == f"{other}/0"


def test_a_tap_shows_what_changes_and_ends(asked: Asked) -> None:
    tap = asked.start("debug", "tap", "--output", "out", "--limit", "5")
    until_s = time.monotonic() + PATIENCE_S
    while tap.poll() is None:  # what came before it had the tables is no change to it
        assert time.monotonic() < until_s
        asked.append(1)
        time.sleep(1)
    out, _ = tap.communicate(timeout=PATIENCE_S)
    assert tap.returncode == 0
    lines = out.splitlines()
    assert len(lines) == 5
    for number, line in enumerate(lines, 1):
        pattern = rf"seq={number} key=(SYM\d+) delta=\(Set \(\(symbol \1\)\(vwap [0-9.]+\)\(trades "
        assert re.match(pattern, line), line


def test_a_tap_shows_only_what_was_asked_for(asked: Asked) -> None:
    given = ("debug", "tap", "--output", "out", "--all", "--format", "json")

    def tapped(count: int, *only: str) -> list[dict[str, Any]]:
        lines = asked.say(*given, "--limit", str(count), *only).splitlines()
        return [json.loads(line) for line in lines]

    ((_, count),) = asked.value("query", "SELECT count(*) AS n FROM out")["rows"][0].items()
    rows = tapped(count)
    assert {row["op"] for row in rows} == {"set"}
    assert len({row["key"]["symbol"] for row in rows}) == count
    symbol = rows[-1]["key"]["symbol"]
    assert [row["key"]["symbol"] for row in tapped(1, "--key", symbol)] == [symbol]
    least = sorted(row["row"]["trades"] for row in rows)[-3]
    where = f"trades >= {least} and not symbol == 'none'"
    many = sorted(row["key"]["symbol"] for row in rows if row["row"]["trades"] >= least)
    found = tapped(len(many), "--where", where)
    assert sorted(row["key"]["symbol"] for row in found) == many
    own = sorted(row["key"]["symbol"] for row in rows if row["process"] == "worker-2/0")
    assert 0 < len(own) < count
    found = tapped(len(own), "--worker", "worker-2")
    assert sorted(row["key"]["symbol"] for row in found) == own
    assert asked.say(*given, "--where", "trades < 0", "--timeout", "1") == ""
    assert "is not an expression" in asked.say(*given, "--where", "f(trades)", code=1)
    assert "does not fit rows of" in asked.say(*given, "--where", "price > 1", code=1)


def test_a_peer_that_knows_types_0_to_5_alone_follows_committed_outputs(asked: Asked) -> None:
    found = asked.value("debug", "wire")
    ports, credential = found["processes"], found["credential"]
    assert list(ports) == ["worker-1/0", "worker-2/0", "worker-3/0"]
    with ExitStack() as sockets:
        nobody = sockets.enter_context(connected(ports["worker-1/0"]))
        with pytest.raises(Refused, match="the caller is unknown"):
            PlainPeer(nobody).greet("plain", "")
        peers = {
            name: PlainPeer(sockets.enter_context(connected(address)))
            for name, address in ports.items()
        }
        _follow(asked, peers, credential)


def _follow(asked: Asked, peers: dict[str, PlainPeer], credential: str) -> None:
    for name, peer in peers.items():
        peer.greet("plain", credential)
        assert peer.process == name
        assert sorted(peer.schemas) == ["decades", "out", "portfolio"]

    def rows(output: str) -> list[str]:
        tables = [peer.tables.get(output, {}).values() for peer in peers.values()]
        return sorted(repr(row) for table in tables for row in table)

    def hear_until(is_so: Callable[[], bool]) -> None:
        until_s = time.monotonic() + 2 * PATIENCE_S
        while not is_so():
            assert time.monotonic() < until_s, (rows("portfolio"), asked.up.said[-3000:])
            for ready in select.select([one.socket for one in peers.values()], [], [], 1)[0]:
                next(one for one in peers.values() if one.socket is ready).take_all()

    def heard() -> int:
        tables = [one.tables.get("out", {}) for one in peers.values()]
        return sum(row["trades"] for table in tables for row in table.values())

    owners = {one["owner"] for one in asked.value("status")["owners"][:PARTITIONS]}
    hear_until(lambda: all("out" in peers[owner].tables for owner in owners))
    asked.append(2)
    records = asked.batches * 1000 * PARTITIONS
    hear_until(lambda: heard() == records)
    for output in ("out", "decades"):
        wanted = asked.value("query", f"SELECT * FROM {output}")["rows"]
        hear_until(lambda output=output, wanted=wanted: rows(output) == sorted(map(repr, wanted)))
    owner = asked.value("status")["owners"][1]["owner"]
    other = "worker-2" if owner == "worker-1/0" else "worker-1"
    asked.say("move", "1", other, "--reason", "to see")
    with pytest.raises(Refused, match=rf"'shown/.*' is at {other}/0 now"):
        hear_until(lambda: False)


def test_while_a_worker_dies_a_tap_stalls_and_goes_on_and_a_query_is_the_truth(
    asked: Asked,
) -> None:
    tap = asked.start("debug", "tap", "--output", "out", "--all", "--format", "json")
    assert tap.stdout is not None
    assert tap.stderr is not None
    try:
        # A worker that is killed before the tap has reached it would never be heard of.
        for line in tap.stderr:
            if "connected to worker-1/0" in line.lower():
                break
        asked.append(2)
        asked.kill_a_worker()
        asked.append(3)
        records = asked.batches * 1000 * PARTITIONS
        found = asked.until('SELECT sum(trades)::BIGINT AS n FROM "out"', [{"n": records}])
        assert set(found["cut"]["out"]) == {str(number) for number in range(PARTITIONS)}
        asked.until("SELECT trades::BIGINT AS n FROM portfolio", [{"n": records}])
        rows: dict[str, int] = {}
        cuts: dict[int, int] = {}
        until_s = time.monotonic() + PATIENCE_S
        while sum(rows.values()) != records:
            assert time.monotonic() < until_s, (rows, asked.up.said[-3000:])
            change = json.loads(tap.stdout.readline())
            number = change["partition"]
            (offset,) = change["cut"].values()
            assert offset >= cuts.get(number, 0), change
            cuts[number] = offset
            rows[change["key"]["symbol"]] = change["row"]["trades"]
    finally:
        tap.send_signal(signal.SIGINT)
        tap.communicate(timeout=PATIENCE_S)
    assert tap.returncode == 130
    tables = {
        row["symbol"]: row["trades"] for row in asked.value("query", "SELECT * FROM out")["rows"]
    }
    assert tables == rows


def test_no_answer_is_exit_code_2() -> None:
    for arguments in (
        ["status"],
        ["query", "SELECT 1"],
        ["debug", "tap", "--output", "x"],
        ["top"],
    ):
        ended = subprocess.run(
            [sys.executable, "-m", "ripple.cli.main", *arguments, "--coordinator", "localhost:1"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 2, ended
        assert "no coordinator answers: localhost:1" in ended.stderr.splitlines()[-1]
