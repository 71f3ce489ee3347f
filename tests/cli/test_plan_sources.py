"""The output of ``ripple plan --source``: how the partitions of a new cluster read sources."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.processes import ripple

MARKET = """
import ripple as rp

@rp.record
class Row:
    symbol: str
    venue: str
    t: rp.Timestamp

market = rp.Pipeline("market")
trades = market.source("trades", Row, time="t")
quotes = market.source("quotes", Row, time="t")
pipeline = trades.join_asof("near", quotes, on="symbol", emit="final").sink("near-out")
chain = (
    rp.Pipeline("chain")
    .source("trades", Row, time="t")
    .partition("p", key="symbol", partitions=3)
    .fold("f", n=rp.count())
    .sink("f-out")
)
"""


def log_of(folder: Path, name: str, partitions: int, key: str) -> str:
    """Return the URI of a new log of the pipeline's records."""
    place = folder / name
    made = ripple(
        *("log", "create", place, "--schema", f"{folder / 'market.py'}:trades"),
        *("--partitions", str(partitions), "--key", key),
    )
    assert made.code == 0, made.err
    return f"log:{place}"


def test_plan_shows_the_repartitioned_sources_of_a_cluster(tmp_path: Path) -> None:
    place = tmp_path / "market.py"
    place.write_text(MARKET)
    trades = log_of(tmp_path, "trades", 4, "symbol")
    quotes = log_of(tmp_path, "quotes", 6, "venue")
    market, chain = f"{place}:pipeline", f"{place}:chain"
    both = ["--source", f"trades={trades}", "--source", f"quotes={quotes}"]
    alone, told = ripple("plan", market).out, ripple("plan", market, *both).out
    said = (
        "on a cluster, its first stage in 4 partitions:\n"
        "    trades is read directly: its 4 partitions are divided by symbol\n"
        "    records of quotes are repartitioned by symbol: its 6 partitions are divided by venue\n"
    )
    assert told.replace(said, "") == alone != told  # workers compare the rest
    values = json.loads(ripple("plan", market, *both, "--json").out)["cluster"]
    assert values["partitions"] == 4
    assert [one["anew_by"] for one in values["sources"]] == [None, ["symbol"]]
    told = ripple("plan", chain, "--source", quotes).out
    assert "first stage in 3 partitions:\n    records of trades are repartitioned by sym" in told


def test_a_plan_refuses_sources_as_a_cluster_does(tmp_path: Path) -> None:
    place = tmp_path / "market.py"
    place.write_text(MARKET)
    ended = ripple("plan", f"{place}:pipeline", "--source", "trades=log:none")
    assert ended.code == 1
    assert "source 'quotes' is not given" in ended.only_line
    ended = ripple("plan", place, "--source", "log:none", "--checkpoint-dir", tmp_path)
    assert "--source asks about a cluster, and" in ended.err
