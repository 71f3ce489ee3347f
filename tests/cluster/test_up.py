"""``ripple cluster up`` as people use it."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import pytest

from ripple.cli.cluster.starting.plan import Asked, processes
from ripple.control.process_settings import PROCESS_PORTS_APART
from ripple.core.errors import InputError
from tests.cli.processes import ROOT
from tests.cli.processes import ripple as command
from tests.cluster.chaos import append, job_of
from tests.cluster.cluster import Job
from tests.cluster.up import PARTITIONS, Up
from tests.patience import PATIENCE_S


@pytest.fixture(params=["totals"])
def job(tmp_path: Path, request: pytest.FixtureRequest) -> Job:
    made = job_of(request.param, tmp_path, PARTITIONS)
    append(made.source, PARTITIONS, step=0, batches=3)
    return made


@pytest.mark.services
def test_up_leaves_the_output_of_a_single_process(job: Job, tmp_path: Path) -> None:
    first = Up(job, "--until-end")
    assert first.ended() == 0, first.said
    assert f"{3000 * PARTITIONS:,} of {3000 * PARTITIONS:,} records" in first.said
    append(job.source, PARTITIONS, step=1, batches=1)
    second = Up(job, "--until-end")
    second.says("is told to stop")  # the outputs are complete, and a signal changes nothing now
    second.process.send_signal(signal.SIGTERM)
    assert second.ended() == 0, second.said
    assert f"{4000 * PARTITIONS:,} of {4000 * PARTITIONS:,} records" in second.said
    assert job.made() == job.alone(tmp_path)
    assert job.tables_made() == job.tables_alone(tmp_path)


@pytest.mark.parametrize("per_worker", [1, 3])
def test_free_ports_are_nobody_elses_while_a_process_is_down(per_worker: int) -> None:
    """Nor does the system give them to whoever connects meanwhile."""
    asked = Asked(
        "examples/vwap.py",
        "log:trades",
        (),
        "state",
        workers=5,
        processes=per_worker,
        coordinators=2,
        partitions=4,
        free_ports=True,
    )
    found = [
        (flag.partition("=")[0], int(flag.partition("=")[2]))
        for one in processes(asked)
        for flag in one.command
        if re.match(r"--(\w+-)?port=", flag)
    ]
    further = [
        port + PROCESS_PORTS_APART * number
        for flag, port in found
        if flag == "--rpc-port"
        for number in range(1, per_worker)
    ]
    ports = [port for _, port in found] + further
    assert len(set(ports)) == len(ports) == 2 * 3 + 5 * (2 + per_worker)
    first_given, _ = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    assert max(ports) < min(int(first_given), 32_768)


def test_workers_are_told_that_one_partition_has_all_records() -> None:
    for needs_one in (False, True):
        asked = Asked(
            "market.py",
            "a=log:a,b=log:b",
            (),
            "state",
            2,
            1,
            1,
            1,
            needs_one=needs_one,
            free_ports=True,
        )
        told = ["--partitions=1" in one.command for one in processes(asked)]
        assert told == [True, needs_one, needs_one]


def test_partitions_that_do_not_fit_the_source_are_refused_before_anything_starts(
    job: Job,
) -> None:
    up = Up(job, "--partitions", "3")
    assert up.ended() == 1
    assert "has 4 partitions, which 3 does not divide" in up.said
    assert "--partitions 4" in up.said
    assert not (job.source.parent / "state").exists()


def test_a_worker_of_too_many_processes_is_told_that_there_are_no_ports() -> None:
    asked = Asked("p.py", "log:t", (), "s", 1, 40, 1, 4, free_ports=True)
    with pytest.raises(InputError, match=r"no 40 ports 500 apart are free .* fewer --processes"):
        processes(asked)


@pytest.mark.services
def test_dead_processes_are_restarted_and_ctrl_c_ends_all(job: Job) -> None:
    up = Up(job)
    up.says(r"worker-1 .*partition \d: begins at")
    number = up.kill_worker()
    up.says(r"worker-1 .* was killed by SIGKILL; restarting")
    up.says(rf"worker-1 +\| process (?!{number})\d+")
    up.process.send_signal(signal.SIGINT)
    assert up.ended() == 130, up.said
    assert "coordinator-1 | process" in up.said


@pytest.mark.services
def test_down_ends_it_and_a_folder_has_one_cluster(job: Job) -> None:
    folder = job.source.parent / "state"
    assert command("cluster", "down", "--dir", folder).only_line.endswith(
        "no cluster runs in " + str(folder)
    )
    up = Up(job, "--workers", "1")
    up.says(r"coordinators: 1, workers: 1")
    for more in ([], ["--workers", "100"]):  # for which there are no ports
        second = Up(job, *more)
        assert second.ended() == 1
        assert f"is held by ripple cluster up, process {up.process.pid}" in second.said
    down = command("cluster", "down", "--dir", folder)
    assert (down.code, down.only_line) == (0, f"ripple: the cluster in {folder} has stopped")
    assert up.ended() == 0, up.said
    assert command("cluster", "down", "--dir", folder).code == 1


@pytest.mark.services
def test_children_end_when_up_is_killed(job: Job) -> None:
    up = Up(job, "--workers", "1")
    up.says(r"worker-1 .*partition \d: begins at")
    ours = [int(number) for number in re.findall(r"\| process (\d+)", up.said)]
    assert len(ours) == 2
    up.process.kill()
    assert up.ended() == -signal.SIGKILL
    until_s = time.monotonic() + PATIENCE_S
    while left := [pid for pid in ours if Path(f"/proc/{pid}").exists()]:
        assert time.monotonic() < until_s, left
        time.sleep(0.05)


@pytest.mark.parametrize("job", ["windows"], indirect=True)
@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (("--source", "trades.csv"), "needs a source that can be read again, not 'trades.csv'"),
        (("--source", "log:{source}/1"), "is one partition: name the topic, log:"),
        (("--source", "log:{source}s"), "cannot read"),
        (("--sink", "out.csv"), "out.csv does not report its commits"),
        (("--workers", "11"), "more than 10 workers or coordinators need --free-ports"),
    ],
)
def test_invalid_flags_are_refused_at_once(job: Job, changed: tuple[str, str], why: str) -> None:
    flags = {"--source": f"log:{job.source}", "--sink": f"log:{job.folder}/out", "--dir": "state"}
    flags |= {changed[0]: changed[1].format(source=job.source)}
    refused = command("cluster", "up", job.pipeline, *(x for pair in flags.items() for x in pair))
    assert refused.code == 1
    assert why in refused.only_line


@pytest.mark.parametrize("job", ["windows"], indirect=True)
def test_topic_of_another_output_is_refused_before_anything_starts(
    job: Job, tmp_path: Path
) -> None:
    other = ["run", ROOT / "examples/portfolio.py", "--source", f"log:{job.source}"]
    kept = ["--sink", f"total=log:{job.folder}/out", "--checkpoint-dir", tmp_path / "other"]
    assert command(*other, *kept).code == 0
    given = [
        "cluster",
        "up",
        job.pipeline,
        "--source",
        f"log:{job.source}",
        "--dir",
        tmp_path / "s",
    ]
    refused = command(*given, "--sink", f"log:{job.folder}/out")
    assert refused.code == 1
    assert "belongs to output 'total' of pipeline 'portfolio', not to" in refused.only_line
    assert not (tmp_path / "s").exists()
