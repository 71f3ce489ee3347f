"""A worker whose code does not fit the stored state fails before it joins."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

import ripple as rp
import ripple.model.aggregate as ra
from coordinator.decisions.compatibility import misfit
from ripple.connectors.identity import identity_of
from ripple.control.assignment import Candidate, Stage
from ripple.control.assignment.version import empty
from ripple.control.rpc.membership_messages import MISFIT
from ripple.control.telemetry.process_log import log_of
from ripple.core.errors import OutputError
from ripple.core.settings import arguments
from ripple.engine.machine import Engine
from ripple.engine.migration.adaptation import ChangedPlanError
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.store import MemoryStore
from ripple.task.home import check_code
from ripple.testing import sim_world
from tests.engine.migration.plans import plan_of, states
from tests.worker.pipeline_counts import PLAN
from tests.worker.trials import Trade, both_sources
from worker.engine.identity import code_of, ends_of
from worker.process import work
from worker.settings import SETTINGS, flags_of, load


async def test_code_is_compared_with_what_is_stored_and_nothing_stored_fits_all() -> None:
    world, store = sim_world(), MemoryStore()
    before = plan_of()
    await check_code(store, before, divides=False)
    owner = await Checkpoints(store, before.name).claim(world.clock, world.random)
    await owner.write(states(before)[0].snapshot())
    for fits in (before, plan_of(step="renamed"), plan_of(shown=("minutes",))):
        await check_code(store, fits, divides=False)
    with pytest.raises(ChangedPlanError, match="fold 'sums': its key, window or aggregates"):
        await check_code(store, plan_of(aggregate=ra.max("volume")), divides=False)
    for name in await store.list(f"{before.name}/00000/manifest/"):
        await store.delete(name)
        await store.put_if_absent(name, b"damaged")
    await check_code(store, before, divides=False)  # its own partition is stopped, and no other
    other = await Checkpoints(store, before.name, 3).claim(world.clock, world.random)
    await other.write(states(before)[0].snapshot())
    with pytest.raises(ChangedPlanError, match="fold 'sums': its key, window or aggregates"):
        await check_code(store, plan_of(aggregate=ra.max("volume")), divides=False)


async def test_code_is_blamed_before_sources_where_the_state_is_of_stages() -> None:
    world, store = sim_world(), MemoryStore()
    keyed = rp.Pipeline("p").source("trades", Trade, time="t").partition("by", key="symbol")
    before = keyed.fold("n", n=rp.count()).sink("numbers")
    owner = await Checkpoints(store, "p").claim(world.clock, world.random)
    await owner.write(replace(Engine(before.plan()).snapshot(), stage=0))
    with pytest.raises(ChangedPlanError, match="and none are, of these sources"):
        await check_code(store, before.plan(), divides=False)
    other = before.also(keyed.fold("other", size=rp.sum("size")).sink("others"))
    with pytest.raises(ChangedPlanError, match=r"of other code, .* fold 'other' is new"):
        await check_code(store, other.plan(), divides=False)


def test_places_are_the_same_however_they_are_said_and_others_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").symlink_to(tmp_path / "data")
    said = ends_of({"trades": "log:data/trades"}, {"out": "log:data/v"}, "", 1000)
    assert said == (
        ("batch_rows", "1000"),
        ("output out", f"log:{tmp_path}/data/v"),
        ("source", f"log:{tmp_path}/data/trades"),
    )
    assert said == ends_of({"t": f"log:{tmp_path}/here/trades"}, {"out": "log:here/v"}, "", 1000)
    others = ends_of({"trades": "log:b/trades"}, {"out": "log:data/w"}, "/lanes", 1000)
    assert not set(said[1:]) & set(others)
    assert ("lanes", "/lanes") in others


def test_sources_of_several_are_told_apart() -> None:
    trades, quotes = "log:data/trades", "log:data/quotes"
    said = dict(ends_of({"trades": trades, "quotes": quotes}, {"out": "log:data/v"}, "", 1))
    other = dict(ends_of({"trades": trades, "quotes": trades}, {"out": "log:data/v"}, "", 1))
    assert {name for name in said if said[name] != other[name]} == {"source quotes"}
    code = code_of(both_sources().plan(), ends=tuple(sorted(said.items())))
    assert [name for name, _ in code.schemas if "." not in name] == ["quotes", "trades"]
    candidate = Candidate(id="b", nonce="b", code=replace(code, ends=tuple(sorted(other.items()))))
    assert misfit(candidate, code, empty([Stage("main", 4)])) == (
        f"b {MISFIT}: its source quotes is {other['source quotes']}, the cluster's is "
        f"{said['source quotes']}"
    )


async def test_output_cannot_be_the_source_and_a_worker_refused_for_that_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").symlink_to(tmp_path / "data")
    given = ["p.py", "--coordinator=localhost:1", "--store=store", "--source=log:data/ticks"]
    given += ["--sink=counts=log:here/ticks"]
    settings = load(arguments(SETTINGS, flags_of(given)), {}, {})
    with pytest.raises(OutputError, match="cannot write log:here/ticks: it is the run's own"):
        await work(settings, PLAN, log_of(settings.log), asyncio.Event())
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


def test_no_secret_is_in_what_tells_a_place_and_a_long_one_is_cut_to_its_own() -> None:
    monkeys = [identity_of(f"log:{'d' * 300}/{name}", "continued_source") for name in "ab"]
    assert len(set(monkeys)) == 2
    assert max(map(len, monkeys)) < 256
    assert identity_of("postgres://me@db:5433/x/t", "continued_sink") == "postgres://db:5433/x/t"
