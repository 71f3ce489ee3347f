"""Inputs that fall silent: their markers are recorded, and read again after a crash."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import pytest

import ripple as rp
from ripple.connectors.inputs import Signal
from ripple.core.errors import InputError, PlanError
from ripple.core.events import no_listener
from ripple.engine.machine import Engine
from ripple.model.batch import IdleMarker
from ripple.model.pipeline.input_names import markers_of
from ripple.model.pipeline.topology import need_no_idle
from ripple.storage.store.opening import open_store
from ripple.task import marker_log
from ripple.task.drive import Drive
from ripple.task.marked_inputs import MarkedInputs
from ripple.task.marker_log import MarkerLog
from ripple.testing import CrashScenario, Faults, crash_test, explore
from ripple.testing.crash.judge import Judge
from ripple.testing.crash.source import CrashSource
from ripple.testing.sim.faults import Drawn
from ripple.testing.sim.run import run
from ripple.testing.sim.world import SimWorld, sim_world
from ripple.world.live import LiveRandom
from tests.engine.machine.ticks import Tick
from tests.examples import EXAMPLES

if TYPE_CHECKING:
    from pathlib import Path

INPUTS = ("ticks/0", "ticks/1")
ALONGSIDE = [seed for seed in range(32) if seed & 2]


def pipeline(idle: str | None = "60ms", lateness: str = "5ns") -> rp.Pipeline:
    return (
        rp.Pipeline("idle")
        .source("ticks", Tick, out_of_order="2ns", idle=idle)
        .partition("by-symbol", key="symbol")
        .window("window", rp.Tumbling("10ns"), lateness=lateness)
        .fold("sums", size=rp.sum("size"), n=rp.count())
        .sink("out")
    )


def two_sources() -> rp.Pipeline:
    market = rp.Pipeline("idle")
    sources = [
        market.source("busy", Tick, out_of_order="2ns"),
        market.source("seldom", Tick, idle="60ms"),
    ]
    return (
        rp.union("all", *sources)
        .partition("by-symbol", key="symbol")
        .window("window", rp.Sliding("20ns", "10ns"), lateness="0s")
        .fold("sums", size=rp.sum("size"), last=rp.last("size"))
        .sink("out")
        .also(sources[1].sink("rows"))
    )


def events(count: int, inputs: tuple[str, ...], seed: int = 0) -> list[Any]:
    """Return ticks of inputs, of which the last one comes seldom, and at last not at all."""
    draw, clock_ns, made = random.Random(seed), 0, []
    for at in range(count):
        clock_ns += draw.choice((0, 1, 3, 8))
        is_seldom = at < count * 2 / 3 and draw.random() < 0.3
        row = {
            "symbol": draw.choice(["AA", "BB", "C"]),
            "price": 1.0,
            "size": draw.choice([1, 2, 3]),
            "venue": None,
            "timestamp_ns": clock_ns + draw.choice((0, 0, 0, -1, -4, -20)),
        }
        made.append((inputs[-1] if is_seldom else inputs[0], row))
    return made


one_source = CrashScenario(pipeline(), events(14, INPUTS), inputs=INPUTS)
several = CrashScenario(two_sources(), events(14, ("busy", "seldom"), 1), inputs=("busy", "seldom"))


@pytest.mark.parametrize("scenario", [one_source, several])
def test_a_crash_at_any_effect_around_markers_is_not_told(scenario: CrashScenario) -> None:
    report = crash_test(scenario, enumerated=(2,), seeds=(), pairs=1, every=31)
    assert report.lives > report.runs > 10


@pytest.mark.parametrize("scenario", [one_source, several])
def test_idle_inputs_survive_random_faults(scenario: CrashScenario) -> None:
    explore(scenario, seeds=ALONGSIDE[: 8 * EXAMPLES])


# The first seed that notices.
SAFEGUARDS = {"marker_put": 2, "marker_replay": 11}


@pytest.mark.parametrize("safeguard", SAFEGUARDS)
def test_markers_without_a_safeguard_are_found_out(safeguard: str) -> None:
    seeds = (SAFEGUARDS[safeguard], *ALONGSIDE)
    runs = (run(one_source, seed, Drawn(seed, Faults()), without=(safeguard,)) for seed in seeds)
    assert any(one.error for one in runs)


def drawn_markers(lengths: dict[str, int], seed: int) -> list[IdleMarker]:
    """Return markers at random offsets of inputs, in a random order of the inputs."""
    draw = random.Random(seed)
    names = [draw.choice(INPUTS) for _ in range(draw.randrange(1, 8))]
    offsets = {name: sorted(draw.randrange(lengths[name] + 1) for _ in names) for name in INPUTS}
    return [
        IdleMarker(draw.randrange(-5, 60), at, name, offsets[name].pop(0))
        for at, name in enumerate(names, 1)
    ]


async def replayed(
    world: SimWorld, source: CrashSource, engine: Engine, rows: int, stop: dict[str, int]
) -> None:
    """Read up to ``stop`` with the markers that are in the store."""
    log = MarkerLog(world.store, "idle")
    await log.read()
    inputs = MarkedInputs(
        source.opened(world.disk, rows, follow=False),
        pipeline().plan(),
        markers_of(0),
        log,
        world.clock,
        emit=no_listener,
        guards=world.guards,
    )
    drive = Drive(engine)
    await inputs.check(stop, {})
    await inputs.open(engine.cut, rows, stop)
    while (found := inputs.next(engine.cut)) is not Signal.ENDED:
        if isinstance(found, Signal):
            await inputs.more()
            continue
        drive.apply(*found)
        drive.stabilize()
    await inputs.close()


def compared(seed: int, world: SimWorld) -> None:
    """Hold a replay in batches of several sizes, and with a restart, to the reference."""
    plan = pipeline(lateness="0s").plan()
    source = CrashSource(plan, events(20, INPUTS, seed), INPUTS)
    source.install(world, whole=True)
    markers = drawn_markers(source.end, seed)
    log = MarkerLog(world.store, "idle")
    until = world.loop.run_until_complete
    until(log.open(1, world.random))
    until(log.add(markers))
    judge = Judge(plan, source)
    for marker in markers:
        judge.take(marker)
    judge.close()
    end = {**source.end, markers_of(0): len(markers)}
    half = {name: offset if name == markers_of(0) else 0 for name, offset in end.items()}
    half |= {one.input: one.offset for one in markers}
    digests = set()
    for rows in (1, 3, 100):
        engine = Engine(plan, inputs=[*INPUTS, markers_of(0)])
        if rows == 3:
            until(replayed(world, source, engine, rows, half))
            engine = Engine.restore(plan, engine.snapshot())
        until(replayed(world, source, engine, rows, end))
        judge.hold(engine)
        digests.add(engine.digest)
    assert len(digests) == 1


def test_a_replay_with_markers_is_a_function_of_the_cut() -> None:
    for seed in range(20 * EXAMPLES):
        compared(seed, sim_world(seed))


@pytest.mark.parametrize("safeguard", ["marker_place", "marker_barrier"])
def test_a_marker_that_counts_elsewhere_is_refused(safeguard: str) -> None:
    def try_all() -> None:
        for seed in range(20):
            compared(seed, sim_world(seed).without(safeguard))

    with pytest.raises(InputError, match="a marker counts after offset"):
        try_all()


def test_markers_of_one_silence_are_merged_and_the_oldest_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in (("MARKER_OBJECTS_MAX", 5), ("MARKERS_SINGLE", 2), ("MARKERS_KEPT_MAX", 4)):
        monkeypatch.setattr(marker_log, name, value)
    world = sim_world()
    until = world.loop.run_until_complete
    log = MarkerLog(world.store, "idle")
    until(log.open(1, world.random))
    for at in range(1, 41):
        until(log.add([IdleMarker(at, at, INPUTS[at % 2], at // 8)]))
        until(log.tidy())
    again = MarkerLog(world.store, "idle")
    until(again.read())
    assert (again.end, again.first) == (log.end, log.first) == (40, log.first)
    assert again.first > 0
    assert len([name for name in world.store.image() if "markers" in name]) < 80
    found = []
    at = again.first
    while (marker := again.after(at)) is not None:
        found.append(marker)
        at = marker.next_offset
    assert found[-1] == IdleMarker(40, 40, INPUTS[0], 5)
    assert len(found) < 12
    assert again.barriers(again.first)[INPUTS[0]] <= 5


def test_a_damaged_log_of_markers_is_named(tmp_path: Path) -> None:
    async def act() -> None:
        async with open_store(str(tmp_path)) as store:
            log = MarkerLog(store, "idle")
            await log.open(1, LiveRandom())
            for at in (1, 2):
                await log.add([IdleMarker(5, at, "ticks", 0)])
            (hurt,) = tmp_path.glob("**/*2.journal")
            hurt.write_bytes(hurt.read_bytes()[:-3])
            with pytest.raises(InputError, match="the log of markers of idle inputs is damaged"):
                await MarkerLog(store, "idle").read()

    asyncio.run(act())


@pytest.mark.parametrize(
    ("idle", "why"),
    [
        ("0s", "source 'ticks': idle must be at least 1ms, as in idle='30s', not '0s'"),
        (-1, "source 'ticks': idle must be within 0 to 2\\^60 ns"),
        ("-5s", "source 'ticks': idle must be a number and a unit"),
        (True, "source 'ticks': idle must be a text such as '60s'"),
        (1.5, "source 'ticks': idle must be a text such as '60s'"),
        ("10", "source 'ticks': idle must be a number and a unit"),
    ],
)
def test_a_wrong_span_of_silence_is_refused(idle: Any, why: str) -> None:
    with pytest.raises(PlanError, match=why):
        pipeline(idle)


def test_silence_without_event_time_is_refused() -> None:
    @rp.record(version=1)
    class Line:
        text: str

    with pytest.raises(PlanError, match="source 'lines': idle needs an event time"):
        rp.Pipeline("p").source("lines", Line, idle="30s")


def test_idle_is_in_no_node_key_and_is_described() -> None:
    with_idle, without = pipeline("30s").plan(), pipeline(None).plan()
    assert with_idle.topology_hash == without.topology_hash
    assert "idle after 30s of silence, by recorded markers" in with_idle.describe()
    assert "idle" not in without.describe().replace("pipeline idle", "")


@pytest.mark.parametrize("where", ["a cluster", "Spark"])
def test_where_no_markers_are_read_the_source_is_named(where: str) -> None:
    with pytest.raises(PlanError, match=f"source 'ticks' has idle=, and {where} reads no markers"):
        need_no_idle(pipeline().plan(), where)
