"""The cluster of docker-compose.yml really works, as processes: see ``stack``."""

from __future__ import annotations

import asyncio
import csv
import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as fl
import pytest
import yaml

from tests.deploy.compose import ROOT
from tests.deploy.scraper import Prometheus
from tests.deploy.stack import Stack
from tests.patience import PATIENCE_S
from tests.services.kafka_reader import read, table
from tests.services.missing import MissingError, skip

pytestmark = pytest.mark.deploy

TRADES = 20_000
WORKERS = ("worker-1", "worker-2", "worker-3")
COORDINATORS = ("coordinator-1", "coordinator-2")
QUIET = "letters|deltas_(sent|received)|delta_bytes|remaining"
Rows = dict[tuple[str, int], tuple[float, int, int]]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("stack")
    try:
        stack = Stack(folder, {"FEED_COUNT": str(TRADES), "FEED_RATE": "100000"})
    except MissingError as error:
        skip(error)
    with stack:
        stack.up()
        for name in (*COORDINATORS, *WORKERS):
            stack.wait_healthy(name)
        yield stack


def test_trades_that_are_fed_become_the_vwaps_of_one_process(stack: Stack, tmp_path: Path) -> None:
    stack.run("feed")
    equal_one_process(stack, tmp_path)


def test_a_gateway_shows_the_same_to_those_with_a_certificate(stack: Stack) -> None:
    stack.up("gateway")
    stack.wait_healthy("gateway")
    at = f"grpc+tls://{stack.address('gateway:9300')}"
    authority, certificate, key = (
        (stack.certificates() / one).read_bytes() for one in ("ca.crt", "client.crt", "client.key")
    )
    believed = {"tls_root_certs": authority, "override_hostname": "gateway"}
    with fl.connect(at, cert_chain=certificate, private_key=key, **believed) as client:
        _wait(lambda: _ready(stack.address("gateway:9301")), stack)
        try:
            shown = client.do_get(fl.Ticket(b"output")).read_all()
        except fl.FlightError as error:
            said = (f"{name}:\n{stack.log(name)}" for name in ("gateway", *COORDINATORS, *WORKERS))
            raise AssertionError("\n".join([str(error), *said])) from error
    starts = shown["window_start_ns"].cast(pa.int64())
    names = ("vwap", "total_volume", "trade_count")
    of_row = [tuple(row[name] for name in names) for row in shown.select(names).to_pylist()]
    keys = zip(shown["symbol"].to_pylist(), starts.to_pylist(), strict=True)
    found = dict(zip(keys, of_row, strict=True))
    _wait(lambda: _written(stack).keys() >= found.keys(), stack)
    written = _written(stack)
    assert found
    assert found == {row: written[row] for row in found}
    with fl.connect(at, **believed) as client, pytest.raises(fl.FlightError):
        client.do_get(fl.Ticket(b"output")).read_all()


def test_the_cluster_says_that_three_workers_are_active(stack: Stack) -> None:
    _wait(lambda: "3/3 active" in stack.run("status"), stack)


def test_a_worker_that_is_replaced_moves_its_partitions_within_its_grace(stack: Stack) -> None:
    before = _written(stack)
    code, took_s = stack.stop("worker-2")
    assert code == 0, stack.log("worker-2")
    assert took_s < stack.services["worker-2"].grace_s
    stack.up("worker-2")
    stack.wait_healthy("worker-2")
    _wait(lambda: "3/3 active" in stack.run("status"), stack)
    assert _written(stack) == before


def test_all_that_prometheus_is_told_to_scrape_answers(stack: Stack) -> None:
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    targets = [
        target for job in config["scrape_configs"] for target in job["static_configs"][0]["targets"]
    ]
    assert len(targets) == len(WORKERS) + len(COORDINATORS)
    for target in targets:
        text = _get(f"http://{stack.address(target)}/metrics")
        assert "# TYPE ripple_" in text, target


def test_each_expression_of_the_board_finds_something(stack: Stack, tmp_path: Path) -> None:
    board = json.loads((ROOT / "deploy/grafana/dashboards/ripple.json").read_text())
    expressions = {
        target["expr"] for panel in board["panels"] for target in panel.get("targets", ())
    }
    try:
        prometheus = Prometheus(tmp_path / "prometheus", stack.address)
    except MissingError as error:
        skip(error)
    with prometheus:
        _wait(lambda: len(prometheus.query("up == 1")) == len(WORKERS) + len(COORDINATORS), stack)
        # Nothing is refused, goes from stage to stage, or recovers.
        absent = {one for one in expressions if not re.search(QUIET, one)}
        ends = time.monotonic() + PATIENCE_S
        while absent := {one for one in absent if not prometheus.query(one)}:  # for rates
            assert time.monotonic() < ends, absent
            time.sleep(0.5)


def test_services_write_to_volumes_only(stack: Stack) -> None:
    for name in (*WORKERS, *COORDINATORS):
        assert list(stack.root_of(name).iterdir()) == [], name


def equal_one_process(stack: Stack, folder: Path) -> None:
    """Wait until what the cluster has written is what one process writes."""
    expected = _of_one_process(folder)
    assert len(expected) > 300
    _wait(lambda: _written(stack).keys() >= expected.keys(), stack)
    written = _written(stack)
    assert {row: written[row] for row in expected} == expected


def _of_one_process(folder: Path) -> Rows:
    """Return the rows of all windows but the last ones, which may be open still in a partition."""
    trades = folder / "trades.csv"
    with trades.open("w") as out:
        feed = [sys.executable, "examples/feed.py", "-", "-", "--print", f"--count={TRADES}"]
        subprocess.run(feed, stdout=out, cwd=ROOT, check=True)
    ripple = str(Path(sys.executable).parent / "ripple")
    pipeline = str(ROOT / "examples/vwap.py")
    places = ["--no-header", "--source", str(trades), "--sink", str(folder / "vwap.csv")]
    subprocess.run([ripple, "run", pipeline, *places], check=True, capture_output=True)
    with (folder / "vwap.csv").open() as found:
        rows = {
            (symbol, int(start)): (float(vwap), int(volume), int(count))
            for symbol, start, _, vwap, volume, count in csv.reader(found)
        }
    last = max(start for _, start in rows)
    return {row: values for row, values in rows.items() if row[1] < last - 120 * 10**9}


def _written(stack: Stack) -> Rows:
    """Return the newest of each row that a consumer of committed records reads of the output."""
    records = asyncio.run(read(stack.broker.bootstrap, "vwap"))
    return {
        (one["symbol"], one["window_start_ns"]): (
            one["vwap"],
            one["total_volume"],
            one["trade_count"],
        )
        for one in table(records).values()
    }


def _wait(is_so, stack: Stack) -> None:  # type: ignore[no-untyped-def]
    ends = time.monotonic() + PATIENCE_S
    while not is_so():
        said = "\n".join(stack.log(name) for name in (*WORKERS, *COORDINATORS))
        assert time.monotonic() < ends, said
        time.sleep(0.5)


def _ready(address: str) -> bool:
    try:
        return "READY" in _get(f"http://{address}/ready")
    except AssertionError:
        return False


def _get(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            return str(answer.read().decode())
    except OSError as error:
        raise AssertionError(f"{url}: {error}") from error
