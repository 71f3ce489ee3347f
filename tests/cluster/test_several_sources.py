"""A pipeline of two sources, of different numbers of partitions, on a cluster of real processes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import ripple as rp
from ripple.core.errors import PlanError
from ripple.storage.log import LogSettings, Topic
from ripple.task.endpoints import EndpointUris
from ripple.world import LiveDisk
from ripple.world.ports import INLINE
from tests.cli.processes import ripple
from tests.cluster.market import BAD, BAD_EVERY, OUTPUTS, PIPELINE, append, job_of
from tests.cluster.up import Up
from tests.worker.trials import in_one
from worker.engine.identity import code_of

ROWS = 5000


@pytest.mark.services
def test_tables_are_those_of_one_process_although_workers_were_killed(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    for source in ("trades", "quotes"):
        append(tmp_path, source, 0, ROWS)
    up = Up(job)
    for partition in (0, 1):
        up.says(rf"partition {partition}: begins at trades/{partition} 0, trades/{partition + 2} 0")
    append(tmp_path, "quotes", 1, ROWS)  # trades lag
    up.kill_worker()
    append(tmp_path, "trades", 1, ROWS)
    up.end_resumed()
    append(tmp_path, "trades", 2, ROWS)
    again = Up(job, "--until-end")
    assert again.ended() == 0, again.said
    assert f"{5 * ROWS:,} of {5 * ROWS:,} records are in the outputs" in again.said
    assert job.tables_made() == job.tables_alone(tmp_path)
    listed = ripple("dead-letter", "list", "--checkpoint-dir", tmp_path / "state/store")
    letters = [line.split()[0] for line in listed.rows if " offset " in line]
    assert Counter(name.partition("/")[0] for name in letters) == {
        "trades": len(range(BAD, 3 * ROWS, BAD_EVERY)),
        "quotes": len(range(BAD, 2 * ROWS, BAD_EVERY)),
    }


@pytest.mark.parametrize(
    ("keys", "changed", "why"),
    [
        ({}, {"quotes": ""}, "source 'quotes' is not given: the pipeline reads trades, quotes"),
        ({}, {"quotes": "rates"}, "there is no source 'rates': the pipeline reads trades, quotes"),
        (
            {"quotes": "bid"},
            {},
            "quotes is partitioned by bid, but the pipeline says that quotes is partitioned by "
            "symbol: say key='bid'",
        ),
        ({}, {"--partitions": "3"}, "trades has 4 partitions, which 3 does not divide"),
        ({}, {"--partitions": "4"}, "quotes has 6 partitions, which 4 does not divide"),
        ({}, {"--sink": "out=log:{folder}/quotes/x"}, "it is in the folder of the run's own"),
    ],
)
def test_sources_that_do_not_fit_are_refused_before_anything_starts(
    keys: dict[str, str], changed: dict[str, str], why: str, tmp_path: Path
) -> None:
    job_of(tmp_path, keys)
    given = ["--dir", tmp_path / "state", "--free-ports"]
    for name in ("trades", "quotes"):
        called = changed.pop(name, name)
        given += ["--source", f"{called}=log:{tmp_path / name}"] if called else []
    sinks = {name: f"{name}=log:{tmp_path / name}" for name in OUTPUTS}
    if "--sink" in changed:
        sinks["out"] = changed.pop("--sink").format(folder=tmp_path)
    given += [flag for sink in sinks.values() for flag in ("--sink", sink)]
    given += [text for pair in changed.items() for text in pair]
    refused = ripple("cluster", "up", PIPELINE, *given)
    assert refused.code == 1
    assert why in refused.only_line
    assert not (tmp_path / "state").exists()


@rp.record
class Price:
    symbol: str
    venue: str
    at: rp.Timestamp


@pytest.mark.parametrize(("key", "checked"), [("symbol", []), ("venue", [("symbol",)])])
def test_records_beside_those_that_are_divided_anew_have_to_be_where_the_pipeline_says(
    key: str, checked: list[tuple[str, ...]], tmp_path: Path
) -> None:
    market = rp.Pipeline("market")
    asked = market.source("asked", Price, key="symbol")
    near = asked.join_asof("near", market.source("bid", Price, key=key), on="symbol", emit="final")
    plan, places = near.sink("out").plan(), {}
    for source in plan.sources:
        disk, settings = LiveDisk(str(tmp_path)), LogSettings()
        Topic.ensure(disk, source.name, source.schema, partitions=2, settings=settings)
        places[source.name] = f"log:{tmp_path / source.name}"
    ends = EndpointUris(plan, places, {}, batch_rows=1, executor=INLINE)
    assert [one.key for one in ends.divisions()] == checked


def test_one_partition_takes_sources_however_they_are_divided(tmp_path: Path) -> None:
    plan = in_one().plan
    for name, count in (("trades", 4), ("quotes", 6)):
        schema = next(one.schema for one in plan.sources if one.name == name)
        Topic.ensure(
            LiveDisk(str(tmp_path)), name, schema, partitions=count, settings=LogSettings()
        )
    places = {name: f"log:{tmp_path / name}" for name in ("trades", "quotes")}

    def ends(partitions: int) -> EndpointUris:
        return EndpointUris(plan, places, {}, batch_rows=1, executor=INLINE, partitions=partitions)

    for unknown in (0, 2):
        with pytest.raises(PlanError, match=r"quotes are divided by t, and newest .* 1\)$"):
            _ = ends(unknown).divides
    assert ends(1).needs_one
    assert not ends(1).divides
    assert code_of(plan, needs_one=True).stages == (("main", 1),)
