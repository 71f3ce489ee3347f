"""A pipeline on Structured Streaming, whose processes are killed while it runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import IO, Any

import pyarrow as pa
import pytest

from ripple.core.errors import InputError
from ripple.model.pipeline.file import load_plan
from ripple.spark.log_table import open_topic
from ripple.spark.parcel import Parcel
from ripple.spark.portions import sources_at
from ripple.spark.report import digests_of
from ripple.storage.log import PartitionReader, PartitionWriter, Topic
from ripple.world import LiveClock, LiveDisk
from tests.patience import PATIENCE_S
from tests.services.family import below, until_gone
from tests.services.spark_session import MARKS, quick, spark
from tests.spark.graph_places import OUTPUTS, Place
from tests.spark.here import replayed
from tests.spark.logs import append, topic_of
from tests.spark.streams import SOURCE, events
from tests.spark.test_tables import changes, held

pytestmark = [*MARKS, pytest.mark.usefixtures("quick_jvms")]
__all__ = ["spark"]
ROOT = Path(__file__).parents[2]
START_S = 2 * PATIENCE_S  # of all that Spark is


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "streamed.py"
    path.write_text(SOURCE)
    return f"{path}:tumbling"


def expected(place: str, file: str) -> str:
    plan = load_plan(file)
    parcel = Parcel.of(file, lambda plan: b"")
    return replayed(parcel, plan, sources_at(place, plan), closes=False)[0].digest


def run_to_end(query: Callable[[], Any]) -> None:
    """Run a query; again where Spark gave up a Python process, which it does after 10 s."""
    from pyspark.errors import StreamingQueryException

    for attempts_left in reversed(range(3)):
        try:
            assert query().awaitTermination(START_S)
        except StreamingQueryException as error:
            if "connect back" not in str(error) or not attempts_left:
                raise
        else:
            return


def test_query_reports_each_micro_batch_and_resumes(spark: Any, file: str, tmp_path: Path) -> None:
    import ripple.spark as rs

    given = events(1500)
    place = topic_of(tmp_path, load_plan(file), given[:900], partitions=2, key=["symbol"])
    found: list[Any] = []
    for _ in range(2):
        run_to_end(
            lambda: rs.run(
                spark,
                file,
                place,
                f"log:{tmp_path}/out",
                f"{tmp_path}/state",
                follow=False,
                show=lambda _, reports: found.append(reports),
            )
        )
        append(place, file, given[900:]) if len(found) == 1 else None
    first, second = found
    assert [sum(one["events"] for one in reports) for reports in found] == [900, 600]
    assert digests_of(load_plan(file), second)[1] == expected(place, file)
    assert {one["restored"] for one in first} == {"the beginning, 0 replayed"}
    assert all("the beginning" not in one["restored"] for one in second)


@pytest.mark.parametrize(("name", "partitions"), [("rows", 2), ("versions", 1)])
def test_a_table_is_streamed_and_resumed(
    name: str, partitions: int, spark: Any, tmp_path: Path
) -> None:
    """The processes of Spark show the table, and its versions, that one process shows."""
    import ripple.spark as rs

    plan, parcel = held(tmp_path, name)
    file, given = f"{tmp_path / 'p.py'}:{name}", changes(300)
    key = ["id"] if partitions > 1 else []
    place = topic_of(tmp_path, plan, given[:200], partitions=partitions, key=key)
    sinks = {output.name: f"log:{tmp_path}/out/{output.name}" for output in plan.outputs}
    found: list[Any] = []
    for _ in range(2):
        run_to_end(
            lambda: rs.run(
                spark,
                file,
                place,
                sinks,
                f"{tmp_path}/state",
                follow=False,
                show=lambda _, reports: found.append(reports),
            )
        )
        append(place, file, given[200:]) if len(found) == 1 else None
    first, second = found
    assert [sum(one["events"] for one in reports) for reports in found] == [200, 100]
    replay, _, _ = replayed(parcel, plan, sources_at(place, plan), closes=False)
    assert digests_of(plan, second)[1] == replay.digest
    assert {one["restored"] for one in first} == {"the beginning, 0 replayed"}
    assert all("the beginning" not in one["restored"] for one in second)


def halves_of(place: str) -> list[list[pa.Table]]:
    """Return the records of each partition of a topic, in two halves."""
    topic, _ = open_topic(place)
    found: list[list[pa.Table]] = [[], []]
    for partition in range(topic.partitions):
        with PartitionReader(topic, partition) as reader:
            rows = pa.Table.from_batches([one.records for one in reader.read()])
        half = rows.num_rows // 2
        found[0].append(rows.slice(0, half))
        found[1].append(rows.slice(half))
    return found


@pytest.mark.parametrize(("name", "partitions"), [("near", 2), ("asof", 1)])
def test_several_sources_are_joined_and_resumed(
    name: str, partitions: int, spark: Any, tmp_path: Path
) -> None:
    import ripple.spark as rs

    place = Place(tmp_path, name, (2, 2))
    plan, halves, topics = place.plan, {}, {}
    for source, at in place.whole.items():
        topic, _ = open_topic(at)
        halves[source] = halves_of(at)
        topics[source] = Topic.create(
            LiveDisk(tmp_path / "grown"), source, topic.schema,
            partitions=2, key=topic.key, time_field=topic.time_field,
        )  # fmt: skip
    places = {source: f"log:{tmp_path}/grown/{source}" for source in topics}
    sinks = {output: f"log:{tmp_path}/out-spark/{output}" for output in OUTPUTS}
    parcel = Parcel.of(place.file, lambda plan: b"")
    for half in range(2):
        for source, topic in topics.items():
            for partition, rows in enumerate(halves[source][half]):
                with PartitionWriter(topic, partition, LiveClock()) as writer:
                    for batch in rows.to_batches():
                        writer.append(batch)
        found: dict[int, Any] = {}
        run_to_end(
            lambda found=found: rs.run(  # type: ignore[misc]
                spark,
                place.file,
                places,
                sinks,
                f"{tmp_path}/state",
                partitions=partitions,
                follow=False,
                show=lambda _, reports: found.update({one["partition"]: one for one in reports}),
            )
        )
        sources = replace(sources_at(places, plan), is_open=partitions == 1)
        report, shown, _ = replayed(parcel, plan, sources, closes=False)
        assert digests_of(plan, found.values())[1] == report.digest
        assert sorted(place.shown("spark"), key=repr) == shown["events"]
        restored = [one["restored"] or "" for one in found.values()]
        assert half == 0 or not any("the beginning" in one for one in restored)


def test_a_streaming_data_frame_lands_and_is_gone_on_from(
    spark: Any, file: str, tmp_path: Path
) -> None:
    import ripple.spark as rs

    given, schema = events(900), "t long, size int, price double, symbol string"
    (tmp_path / "given").mkdir()
    landing = f"log:{tmp_path}/landed"
    found: list[Any] = []
    for number, part in enumerate((given[:500], given[500:])):
        lines = [json.dumps(row) for row in part]
        (tmp_path / "given" / f"{number}.json").write_text("\n".join(lines))
        run_to_end(
            lambda: rs.run(
                spark,
                file,
                spark.readStream.schema(schema).json(f"{tmp_path}/given"),
                f"log:{tmp_path}/out",
                f"{tmp_path}/state",
                landing=landing,
                partitions=2,
                follow=False,
                show=lambda _, reports: found.append(reports),
            )
        )
    assert [sum(one["events"] for one in reports) for reports in found] == [500, 400]
    assert digests_of(load_plan(file), found[-1])[1] == expected(landing, file)
    rates = spark.readStream.format("rate").load()
    sockets = spark.readStream.format("socket").option("host", "h").option("port", 9).load()
    fields = "value as symbol", "1.0D as price", "1 as size", "1L as t"
    for frame, place, why in [
        (rates, landing, "has no symbol, price, size, t: trades has the fields"),
        (rates.selectExpr("'A' as symbol", *fields[1:]), None, "add landing="),
        (sockets.selectExpr(*fields), landing, "a socket cannot repeat anything"),
        (spark.range(3).selectExpr("'A' as symbol", *fields[1:]), landing, "a streaming DataFrame"),
        (landing, landing, "has offsets of its own"),
    ]:
        with pytest.raises(InputError, match=why):
            rs.run(spark, file, frame, f"log:{tmp_path}/x", f"{tmp_path}/y", landing=place)


def started(
    file: str, place: str, folder: Path, master: str, said: IO[str], *more: str
) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ripple.cli.main", "spark", "run", file]
    command += ["--source", place, "--sink", f"log:{folder}/out", "--store", f"{folder}/state"]
    command += ["--master", master, "--batch", "50", *quick(), *more]
    command += ["--every", "0 seconds"] if "--follow" in more else []
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=said, stderr=said)


def killed(victims: list[int]) -> int:
    done = 0
    for victim in victims:
        try:
            os.kill(victim, signal.SIGKILL)
            done += 1
        except ProcessLookupError:
            continue
    return done


def test_executors_and_the_driver_are_killed_and_the_outputs_are_the_same(
    file: str, tmp_path: Path
) -> None:
    master = "local-cluster[2,1,1024]"
    chance, given = Random(5), events(6000)
    place = topic_of(tmp_path, load_plan(file), given[:600], partitions=2, key=["symbol"])
    log, kills = tmp_path / "said", 0
    with log.open("w") as said:
        driver, _ = at_work(file, place, tmp_path, master, said)
        for at in range(600, 5400, 600):
            append(place, file, given[at : at + 600])
            time.sleep(chance.uniform(0.5, 4))
            if kills < 3:
                kills += killed([chance.choice(executors(driver, log))])
        family = list(below(driver.pid))
        killed([driver.pid, *family])  # at once: what an executor's machine would see
        driver.wait()
        append(place, file, given[5400:])
        again = started(file, place, tmp_path, "local[2]", said)
        assert again.wait(START_S) == 0, log.read_text()
    assert kills == 3
    text = log.read_text()
    assert f"Digest:            {expected(place, file)}" in text, text


def test_a_signal_while_spark_starts_ends_it_in_a_line_and_leaves_no_jvm(
    file: str, tmp_path: Path
) -> None:
    log, plan = tmp_path / "said", load_plan(file)
    place = topic_of(tmp_path, plan, events(10), partitions=2, key=["symbol"])
    with log.open("w") as said:
        driver = started(file, place, tmp_path, "local[2]", said, "--follow")
        deadline = time.monotonic() + PATIENCE_S
        while not any("SparkSubmit" in line for line in below(driver.pid).values()):
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        family = below(driver.pid)
        driver.terminate()
        assert driver.wait(PATIENCE_S) == 128 + signal.SIGTERM
    lines = [line for line in log.read_text().splitlines() if not line.startswith("WARNING: ")]
    assert lines == ["ripple: ended by SIGTERM"]
    until_gone(family, PATIENCE_S)


def test_a_signal_in_the_middle_ends_it_in_good_order_and_the_jvm_says_nothing(
    file: str, tmp_path: Path
) -> None:
    log, plan = tmp_path / "said", load_plan(file)
    place = topic_of(tmp_path, plan, events(2000), partitions=2, key=["symbol"])
    with log.open("w") as said:
        driver, family = at_work(file, place, tmp_path, "local[2]", said)
        (jvm,) = [pid for pid, line in family.items() if "SparkSubmit" in line]
        assert os.getpgid(jvm) != os.getpgid(driver.pid), "signals at a terminal reach it"
        driver.terminate()
        assert driver.wait(PATIENCE_S) == 0, log.read_text()
    lines = [line for line in log.read_text().splitlines() if "resumed from" not in line]
    assert lines[0] == f"--- {plan.name} ---", log.read_text()
    assert lines[-1] == "ripple: stopped by SIGTERM"
    until_gone(family, PATIENCE_S)


def test_a_jvm_that_is_killed_is_named(file: str, tmp_path: Path) -> None:
    log, plan = tmp_path / "said", load_plan(file)
    place = topic_of(tmp_path, plan, events(2000), partitions=2, key=["symbol"])
    with log.open("w") as said:
        driver, family = at_work(file, place, tmp_path, "local[2]", said)
        killed([pid for pid, line in family.items() if "SparkSubmit" in line])
        assert driver.wait(PATIENCE_S) == 1, log.read_text()
    lines = [line for line in log.read_text().splitlines() if "resumed from" not in line]
    assert lines == ["ripple: the JVM in which Spark runs has ended"]
    until_gone(family, PATIENCE_S)


def at_work(
    file: str, place: str, folder: Path, master: str, said: IO[str]
) -> tuple[subprocess.Popen[str], dict[int, str]]:
    """Start a driver, wait until a partition is owned, and return it and the processes below it.

    On a machine that stalls, Spark gives up a Python process after 10 s: then it starts again.
    """
    attempts_left, log = 3, Path(said.name)
    deadline = time.monotonic() + START_S
    driver = started(file, place, folder, master, said, "--follow")
    while not list(folder.glob("out/*/epochs/*.fence")):
        if driver.poll() is not None and attempts_left and "waited in vain" in log.read_text():
            attempts_left -= 1
            said.seek(0)
            said.truncate()
            driver = started(file, place, folder, master, said, "--follow")
        assert driver.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)
    return driver, below(driver.pid)


def executors(driver: subprocess.Popen[str], log: Path) -> list[int]:
    """Wait until an executor is there: one that was killed is followed by another in a while."""
    deadline = time.monotonic() + START_S
    while True:
        family = below(driver.pid)
        found = [pid for pid, line in family.items() if "CoarseGrainedExecutorBackend" in line]
        if found:
            return found
        assert driver.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)
