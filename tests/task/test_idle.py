"""Inputs that fall silent: their markers are recorded, and read again after a crash."""

from __future__ import annotations

import asyncio
import random
import re
import shutil
from contextlib import suppress
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import pytest

import ripple as rp
from ripple.connectors.inputs import Signal
from ripple.core.errors import InputError, PlanError
from ripple.core.events import no_listener
from ripple.engine.machine import Engine
from ripple.model.batch import IdleMarker
from ripple.model.pipeline.division import need_no_idle, need_one_division
from ripple.model.pipeline.input_names import markers_of
from ripple.model.schema.columns import records_of
from ripple.spark.markers import marked
from ripple.spark.parcel import Parcel
from ripple.spark.portions import sources_at
from ripple.storage.fenced import Added, FencedError, Journal
from ripple.storage.log import PartitionWriter, Topic
from ripple.storage.store.opening import open_store
from ripple.task import marker_log
from ripple.task.drive import Drive
from ripple.task.idleness import Idleness
from ripple.task.marked_inputs import MarkedInputs
from ripple.task.marker_log import MarkerLog
from ripple.testing import CrashScenario, Faults, crash_test, explore
from ripple.testing.crash.judge import Judge
from ripple.testing.crash.source import CrashSource
from ripple.testing.reference.interpreter import Reference
from ripple.testing.sim.faults import Drawn
from ripple.testing.sim.run import run
from ripple.testing.sim.world import SimWorld, sim_world
from ripple.world.live import LiveClock, LiveRandom
from ripple.world.live_disk import LiveDisk
from tests.cli.processes import Ended, ripple
from tests.engine.machine.ticks import Tick
from tests.examples import EXAMPLES, SAMPLED, SCATTERED
from tests.patience import comes
from tests.spark.here import replayed as replayed_here

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


def without_windows(kind: str) -> rp.Pipeline:
    """Return a pipeline in which rows, or keys that end, wait for the watermark."""
    market = rp.Pipeline("idle")
    ticks, seldom = (market.source(name, Tick, idle="60ms") for name in ("ticks", "seldom"))
    both = rp.union("all", ticks, seldom)
    match kind:
        case "ttl":
            keyed = both.partition("by-symbol", key="symbol")
            return keyed.fold("sums", size=rp.sum("size"), ttl="20ns").sink("out")
        case "distinct":
            return both.distinct("first", key="symbol", within="5ns").sink("out")
        case "interval":
            near = {"within": ("-5ns", "5ns"), "how": "left", "emit": "final"}
            return ticks.join_interval("near", seldom, on="symbol", **near).sink("out")
    return ticks.join_asof("as-of", seldom, on="symbol", emit="final").sink("out")


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
    report = crash_test(scenario, enumerated=(2,), seeds=(), pairs=1, every=SCATTERED)
    assert report.lives > report.runs > 5


@pytest.mark.parametrize("scenario", [one_source, several])
def test_idle_inputs_survive_random_faults(scenario: CrashScenario) -> None:
    explore(scenario, seeds=ALONGSIDE[: 8 * EXAMPLES // SAMPLED])


@pytest.mark.parametrize("kind", ["asof", "interval", "distinct", "ttl"])
def test_no_row_and_no_key_waits_for_silent_inputs(kind: str, tmp_path: Path) -> None:
    for name in ("ticks", "seldom"):
        Topic.create(LiveDisk(tmp_path), name, rp.schema_of(Tick), partitions=1)
    row = {"symbol": "AA", "price": 1.0, "size": 1, "venue": None, "timestamp_ns": 5}
    with PartitionWriter(Topic.open(LiveDisk(tmp_path), "ticks"), 0, LiveClock()) as writer:
        writer.append(records_of([row], without_windows(kind).plan().sources[0].fields))

    async def act() -> int:
        async with rp.Task(
            without_windows(kind),
            source={name: f"log:{tmp_path}/{name}" for name in ("ticks", "seldom")},
            sink=tmp_path / "out.jsonl",
            checkpoint_dir=tmp_path / "state",
            follow=True,
        ) as task:
            running = asyncio.create_task(task.run())
            given = 2 if kind == "ttl" else 1  # a row, and that it was removed
            await comes(lambda: running.done() or task.report.rows_out == given)
            task.stop()
            return (await running).rows_out

    assert asyncio.run(act()) == (2 if kind == "ttl" else 1)


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
    source = CrashSource(pipeline().plan(), events(20, INPUTS), INPUTS)
    source.install(world, whole=True)
    engine = Engine(pipeline().plan(), inputs=[*INPUTS, markers_of(0)])
    with pytest.raises(InputError, match=f"from 0 on, and their log begins at {again.first}"):
        until(replayed(world, source, engine, 3, {**source.end, markers_of(0): 40}))


def test_the_form_of_markers_stays() -> None:
    world = sim_world()
    until = world.loop.run_until_complete
    log = MarkerLog(world.store, "idle", 3)
    until(log.open(7, world.random))
    until(log.add([IdleMarker(-5, 1, "ticks/0", 4), IdleMarker(60, 2, "ticks/1", 0)]))
    *_, added = until(Journal(world.store, "idle/00003/markers/").read())
    data = b'{"first":0,"markers":[[1,"ticks/0",4,-5],[2,"ticks/1",0,60]]}'
    assert added == Added(7, is_whole=False, data=data)


def test_a_damaged_log_of_markers_is_named(tmp_path: Path) -> None:
    async def act() -> None:
        async with open_store(str(tmp_path)) as store:
            log = MarkerLog(store, "idle")
            await log.open(1, LiveRandom())
            for at in (1, 2):
                await log.add([IdleMarker(5, at, "ticks", 0)])
            (hurt,) = tmp_path.glob("**/*2.journal")
            whole = hurt.read_bytes()
            hurt.write_bytes(whole[:-3])
            with pytest.raises(InputError, match="the log of markers of idle inputs is damaged"):
                await MarkerLog(store, "idle").read()
            hurt.write_bytes(whole)
            again = MarkerLog(store, "idle")
            await again.read()
            again.check(2)
            with pytest.raises(InputError, match="and their log holds 2: it lies with the"):
                again.check(3)

    asyncio.run(act())


def test_markers_that_a_run_without_idle_has_passed_are_removed(tmp_path: Path) -> None:
    """They were made durable before a crash, and no cut has read them."""
    log, state = f"log:{tmp_path}/ticks", tmp_path / "state"
    Topic.create(LiveDisk(tmp_path), "ticks", rp.schema_of(Tick), partitions=1)
    with PartitionWriter(Topic.open(LiveDisk(tmp_path), "ticks"), 0, LiveClock()) as writer:
        rows = [row for _, row in events(9, INPUTS[:1])]
        writer.append(records_of(rows, pipeline().plan().source.fields))

    async def record() -> None:
        async with open_store(str(state)) as store:
            held = MarkerLog(store, "idle")
            await held.open(1, LiveRandom())
            await held.add([IdleMarker(3, 1, "ticks", 2), IdleMarker(300, 2, "ticks", 9)])

    def ran(idle: str | None) -> tuple[dict[str, int], int]:
        out = tmp_path / "out.csv"
        report = rp.run(pipeline(idle), source=log, sink=out, checkpoint_dir=state)
        return dict(report.cut), report.events

    asyncio.run(record())
    assert ran(None) == ({"ticks": 9}, 9)
    # A marker is no event.
    assert ran("1h") == ran("1h") == ran(None) == ({"ticks": 9, markers_of(0): 2}, 0)


def test_plan_refuses_where_the_markers_that_were_read_are_gone(tmp_path: Path) -> None:
    """As the run does: from a checkpoint, and where the outputs alone have read them."""
    log, state, out = f"log:{tmp_path}/ticks", tmp_path / "state", tmp_path / "out.csv"
    Topic.create(LiveDisk(tmp_path), "ticks", rp.schema_of(Tick), partitions=1)
    (tmp_path / "idle.py").write_text(
        "from tests.task.test_idle import pipeline as of\n\npipeline = of('1h')\n"
    )

    async def record() -> None:
        async with open_store(str(state)) as store:
            held = MarkerLog(store, "idle")
            await held.open(1, LiveRandom())
            await held.add([IdleMarker(3, 1, "ticks", 0)])

    def planned(at: Path, *options: object) -> Ended:
        return ripple("plan", tmp_path / "idle.py", "--checkpoint-dir", at, *options)

    asyncio.run(record())
    rp.run(pipeline("1h"), source=log, sink=out, checkpoint_dir=state)
    assert planned(state, "--sink", out).code == 0
    markers = state / "idle/00000/markers"
    markers.rename(tmp_path / "elsewhere")
    (tmp_path / "other").mkdir()
    for at, options in (
        (state, ()),
        (state, ("--sink", out)),
        (tmp_path / "other", ("--sink", out)),
    ):
        ended = planned(at, *options)
        assert (ended.code, ended.rows[-1]) == (1, "ripple run would refuse to start.")
        assert "markers of idle inputs were read, and their log holds 0" in ended.err
        with pytest.raises(InputError, match="and their log holds 0"):
            rp.run(pipeline("1h"), source=log, sink=out, checkpoint_dir=at)
    assert planned(tmp_path / "other").code == 0
    (tmp_path / "elsewhere").rename(markers)
    assert planned(state, "--sink", out).code == 0


@pytest.mark.parametrize(
    ("idle", "why"),
    [
        ("0s", "source 'ticks': idle must be at least 1ms, as in idle='30s', not '0s'"),
        (-1, "source 'ticks': idle must be within 0 to 2\\^60 ns"),
        ("-5s", "source 'ticks': idle must be within 0 to 2\\^60 ns"),
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


def test_where_no_markers_are_read_the_source_is_named() -> None:
    with pytest.raises(PlanError, match="source 'ticks' has idle=, and Spark reads no markers"):
        need_no_idle(pipeline().plan(), "Spark")


def test_a_former_owner_adds_no_markers() -> None:
    """Without the fence of its log, another one comes to count in the place of the owner's."""

    async def added(*missing: str) -> tuple[list[IdleMarker], list[IdleMarker]]:
        world = sim_world()
        logs = [
            MarkerLog(world.store, "idle", guards=lambda one: one not in missing) for _ in range(3)
        ]
        former, owner, reader = logs
        await former.open(1, world.random)
        await owner.open(2, world.random)
        for at in (1, 2):
            with suppress(FencedError):
                await former.add([IdleMarker(at, at, INPUTS[0], 0)])
        for at in (1, 2):
            await owner.add([IdleMarker(10 * at, at, INPUTS[0], 0)])
        await reader.read()
        found = [[one for at in (0, 1) if (one := log.after(at))] for log in (owner, reader)]
        return found[0], found[1]

    owned, read = asyncio.run(added())
    assert owned == read
    owned, read = asyncio.run(added("journal_fence"))
    assert owned != read


def test_no_end_is_asked_for_where_no_marker_of_any_silent_input_would_rise() -> None:
    """Some of them may have unread records: their ends say so, and leave the others."""
    names = ("busy/0", "seldom/0", "seldom/1")
    idleness = Idleness(two_sources().plan(), names)
    idleness.begin(0)
    silences = [part for size in (1, 2) for part in combinations(names[1:], size)]
    seen = set()
    for silent, times in product(silences, product(range(3), repeat=3)):
        watermarks_ns = dict(zip(names, times, strict=True))
        rises = any(
            idleness.markers(left, watermarks_ns, watermarks_ns, 9, 0)
            for left in silences
            if {*left} <= {*silent}
        )
        may_rise = idleness.may_rise({*silent}, watermarks_ns)
        assert may_rise or not rises, (silent, times)
        seen.add((may_rise, rises))
    assert {(True, True), (False, False)} <= seen
    alone = Idleness(pipeline().plan(), INPUTS)
    assert alone.may_rise({*INPUTS}, dict.fromkeys(INPUTS, 9))  # by the wall clock


def test_a_marker_names_no_time_after_its_input_was_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process may stand still in between, and records come: they are as early as ever."""
    world = sim_world()
    source = CrashSource(pipeline().plan(), events(1, INPUTS[:1]), INPUTS[:1])
    source.install(world, whole=True)
    inputs, until = source.opened(world.disk, 1, follow=True), world.loop.run_until_complete
    log, bounds = MarkerLog(world.store, "idle"), inputs.bounds
    until(log.open(1, world.random))
    marked = MarkedInputs(
        inputs,
        pipeline().plan(),
        markers_of(0),
        log,
        world.clock,
        emit=no_listener,
        guards=world.guards,
    )
    marked.waiting_count = lambda: 1
    marked.watermarks_ns = lambda: dict.fromkeys(INPUTS[:1], 0)
    looked_ns: list[int] = []

    async def slow() -> Any:
        looked_ns.append(world.clock.now_ns())
        await world.clock.sleep(60)
        return await bounds()

    async def found() -> IdleMarker:
        cut = {**source.end, markers_of(0): 0}
        await marked.open(cut, 1)
        while isinstance(one := marked.next(cut), Signal):
            await marked.more()
        await marked.close()
        assert isinstance(one[1], IdleMarker)
        return one[1]

    monkeypatch.setattr(inputs, "bounds", slow)
    assert until(found()).watermark_ns <= looked_ns[0] - 2


def test_no_marker_is_added_before_recorded_ones_count() -> None:
    """It would bind an input that is open past it, and a replay would read that otherwise."""
    world = sim_world()
    source = CrashSource(pipeline().plan(), events(8, INPUTS), INPUTS)
    source.install(world, whole=True)
    log, until = MarkerLog(world.store, "idle"), world.loop.run_until_complete
    until(log.open(1, world.random))
    until(log.add([IdleMarker(1, 1, INPUTS[0], source.end[INPUTS[0]])]))
    marked = MarkedInputs(
        source.opened(world.disk, 1, follow=True),
        pipeline().plan(),
        markers_of(0),
        log,
        world.clock,
        emit=no_listener,
        guards=world.guards,
    )
    marked.waiting_count = lambda: 1
    marked.watermarks_ns = lambda: dict(zip(INPUTS, (50, 0), strict=True))

    async def ends() -> list[int]:
        """Read a record a second; return the end of the log before each marker that was read."""
        cut, found = {INPUTS[0]: 0, INPUTS[1]: source.end[INPUTS[1]], markers_of(0): 0}, []
        await marked.open(cut, 1)
        while len(found) < 2:
            await world.clock.sleep(1)
            one = marked.next(cut)
            if isinstance(one, Signal):
                await marked.more()
                continue
            if isinstance(one[1], IdleMarker):
                found.append(log.end)
            cut[one[0]] = one[1].next_offset
        await marked.close()
        return found

    assert until(ends()) == [1, 3]


def test_an_owner_reads_each_object_of_markers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it reads while its predecessor goes on is read; the log has hundreds of objects."""
    world, read = sim_world(), list[str]()
    until, get = world.loop.run_until_complete, world.store.get
    former, owner = MarkerLog(world.store, "idle"), MarkerLog(world.store, "idle")
    until(former.open(1, world.random))
    for at in (1, 2, 3):
        until(former.add([IdleMarker(at, at, INPUTS[0], 0)]))

    async def counted(name: str, **limits: int) -> bytes | None:
        read.append(name)
        return await get(name, **limits)

    monkeypatch.setattr(world.store, "get", counted)
    until(owner.read())
    until(former.add([IdleMarker(4, 4, INPUTS[0], 0)]))
    until(owner.read())
    until(owner.open(2, world.random))
    assert owner.end == 4
    assert len(read) == len(set(read)) == 5


def test_a_standby_takes_each_object_of_markers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads at each commit with markers, among partitions that are live."""
    world, sizes, decoded = sim_world(), list[int](), marker_log._decoded
    until = world.loop.run_until_complete
    owner, standby = MarkerLog(world.store, "idle"), MarkerLog(world.store, "idle")

    def counted(data: bytes) -> tuple[int, list[IdleMarker]]:
        first, markers = decoded(data)
        sizes.append(len(markers))
        return first, markers

    def held() -> list[IdleMarker | None]:
        return [standby.after(at) for at in range(5)]

    monkeypatch.setattr(marker_log, "_decoded", counted)
    until(owner.open(1, world.random))
    markers = [IdleMarker(at, at, INPUTS[0], at) for at in range(1, 5)]
    for at, one in enumerate(markers[:3], 1):
        until(owner.add([one]))
        until(standby.read())
        assert held() == [*markers[:at], *[None] * (5 - at)]
    assert sizes == [1, 1, 1]
    monkeypatch.setattr(marker_log, "MARKER_OBJECTS_MAX", 1)
    until(owner.tidy())
    until(owner.add([markers[3]]))
    until(standby.read())
    assert held() == [*markers, None]
    assert sizes == [1, 1, 1, 3, 1]
    assert standby.barriers(0) == {INPUTS[0]: 1}


def test_a_cluster_that_divides_records_anew_refuses_idle_inputs() -> None:
    plan = pipeline().plan()
    need_one_division(plan, "a cluster", {"ticks": ("symbol",)})
    why = "records of ticks are divided by venue, and sums needs all of one symbol"
    with pytest.raises(PlanError, match=re.escape(f"its records are repartitioned ({why}): let")):
        need_one_division(plan, "a cluster", {"ticks": ("venue",)})


def test_a_replay_on_spark_reads_the_markers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its jobs run here, without Spark: counts and rows are those of the reference."""
    plan = pipeline(lateness="0s").plan()
    monkeypatch.setattr(Parcel, "plan", lambda _: plan)
    for seed in range(4 * EXAMPLES):
        world, place = sim_world(seed), tmp_path / str(seed)
        source = CrashSource(plan, events(20, INPUTS, seed), INPUTS)
        source.install(world, whole=True)
        for path, data in world.disk.image().items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_bytes(data)
        markers = drawn_markers(source.end, seed)

        async def record(place: Path = place, markers: list[IdleMarker] = markers) -> None:
            async with open_store(str(place / "state")) as store:
                log = MarkerLog(store, "idle")
                await log.open(1, LiveRandom())
                await log.add(markers)

        asyncio.run(record())
        reference, at = Reference(plan, INPUTS), dict.fromkeys(INPUTS, 0)
        for name, offset, marker in [
            *((one.input, one.offset, one) for one in markers),
            *((name, end, None) for name, end in source.end.items()),
        ]:
            for event in source.events[name][at[name] : offset]:
                reference.apply(event, name)  # type: ignore[arg-type]  # none is a marker
            at[name] = offset
            if marker is not None:
                reference.advance(name, marker.watermark_ns)
        reference.close()
        parcel = Parcel.of(plan, lambda _: b"", has_markers=True)
        sources = marked(sources_at(f"log:{place}/source", plan), str(place / "state"), plan)
        report, rows, _ = replayed_here(parcel, plan, sources)
        assert report.counters == reference.counts
        assert rows["out"] == sorted(reference.tables()["out"].values(), key=repr)


def test_markers_for_spark_are_those_of_the_run_that_has_read_the_source(tmp_path: Path) -> None:
    plan = pipeline().plan()
    with pytest.raises(
        PlanError, match=r"a replay or a validation without markers= \(--markers DIR\)"
    ):
        Parcel.of(plan, lambda _: b"")
    ripple("log", "create", tmp_path / "ticks", "--schema", "trade")
    sources = sources_at(f"log:{tmp_path}/ticks", plan)
    with pytest.raises(
        InputError, match=r"there is no folder .*state: name another with --markers"
    ):
        marked(sources, str(tmp_path / "state"), plan)
    assert not (tmp_path / "state").exists()
    (tmp_path / "state").mkdir()
    with pytest.raises(InputError, match="no markers of pipeline 'idle' can be replayed"):
        marked(sources, str(tmp_path / "state"), plan)

    async def record() -> None:
        async with open_store(str(tmp_path / "state")) as store:
            log = MarkerLog(store, "idle")
            await log.open(1, LiveRandom())
            await log.add([IdleMarker(5, 1, "other", 0)])

    asyncio.run(record())
    with pytest.raises(InputError, match="holds markers of input 'other', and the source has"):
        marked(sources, str(tmp_path / "state"), plan)


def test_a_run_that_finds_its_markers_damaged_leaves_them_as_they_are(tmp_path: Path) -> None:
    """Once the object is restored, the run goes on."""
    log, state = f"log:{tmp_path}/ticks", tmp_path / "state"
    Topic.create(LiveDisk(tmp_path), "ticks", rp.schema_of(Tick), partitions=2)
    with PartitionWriter(Topic.open(LiveDisk(tmp_path), "ticks"), 0, LiveClock()) as writer:
        rows = [row for _, row in events(20, INPUTS[:1])]
        writer.append(records_of(rows, pipeline().plan().source.fields))

    async def act() -> dict[str, int]:
        async with rp.Task(
            pipeline("20ms"),
            source=log,
            sink=tmp_path / "out.csv",
            checkpoint_dir=state,
            follow=True,
        ) as task:
            running = asyncio.create_task(task.run())
            await comes(lambda: running.done() or task.report.rows_out)
            task.stop()
            return dict((await running).cut or {})

    first = asyncio.run(act())
    assert first[markers_of(0)] > 0
    shown = ripple("checkpoint", "show", "--dir", state)
    assert f"  input      {markers_of(0)}: next offset {first[markers_of(0)]}\n" in shown.out
    assert ripple("checkpoint", "verify", "--dir", state).code == 0
    before = {path.name for path in state.glob("*/*/markers/*")}
    hurt = next(path for path in sorted(state.glob("*/*/markers/*")) if path.stat().st_size > 40)
    whole = hurt.read_bytes()
    hurt.write_bytes(whole[:-1])
    with pytest.raises(InputError, match="the log of markers of idle inputs is damaged"):
        asyncio.run(act())
    verified = ripple("checkpoint", "verify", "--dir", state)
    assert verified.code == 1
    assert "the log of markers of idle inputs is damaged" in verified.out
    assert {path.name for path in state.glob("*/*/markers/*")} == before
    hurt.write_bytes(whole)
    (state / "idle/00000/markers").rename(tmp_path / "elsewhere")
    assert "and their log holds 0" in ripple("checkpoint", "verify", "--dir", state).out
    (tmp_path / "elsewhere").rename(state / "idle/00000/markers")
    report = rp.run(pipeline("20ms"), source=log, sink=tmp_path / "out.csv", checkpoint_dir=state)
    assert report.cut is not None
    # A slow run may have written further markers.
    assert report.cut[markers_of(0)] >= first.pop(markers_of(0))
    assert report.cut.items() >= first.items()


def test_markers_without_a_manifest_are_read_on_above_their_epoch(tmp_path: Path) -> None:
    log, state = f"log:{tmp_path}/ticks", tmp_path / "state"
    Topic.create(LiveDisk(tmp_path), "ticks", rp.schema_of(Tick), partitions=1)

    def ran(idle: str | None) -> dict[str, int]:
        out = tmp_path / "out.csv"
        return dict(rp.run(pipeline(idle), source=log, sink=out, checkpoint_dir=state).cut or {})

    async def record() -> None:
        async with open_store(str(state)) as store:
            held = MarkerLog(store, "idle")
            await held.open(7, LiveRandom())
            await held.add([IdleMarker(3, 1, "ticks", 0)])

    asyncio.run(record())
    first = ran("1h")
    assert first == {"ticks": 0, markers_of(0): 1}
    for name in ("manifest", "state", "letters"):
        shutil.rmtree(state / "idle/00000" / name)
    with pytest.raises(InputError, match="its manifest was lost: run it once with idle="):
        ran(None)
    assert ran("1h") == ran(None) == first
