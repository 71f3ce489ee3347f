"""``ripple cluster up`` as people use it."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.processes import RIPPLE, ROOT, Ended
from tests.cli.processes import ripple as command
from tests.cluster.chaos import append, job_of
from tests.cluster.cluster import Job, ripple

PARTITIONS = 4
WITHIN_S = 60


@pytest.fixture
def job(tmp_path: Path) -> Job:
    made = job_of("windows", tmp_path, PARTITIONS)
    append(made.source, PARTITIONS, step=0, batches=3)
    return made


def up(job: Job, *more: object) -> subprocess.Popen[str]:
    """Start a cluster of two workers."""
    return subprocess.Popen(
        [
            *(*RIPPLE, "cluster", "up", str(job.pipeline), "--source", f"log:{job.source}"),
            *("--sink", f"log:{job.output}", "--dir", str(job.source.parent / "state")),
            *("--workers", "2", "--free-ports", *map(str, more)),
        ],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> Ended:
    _, err = process.communicate(timeout=WITHIN_S)
    return Ended(process.returncode, "", err)


def test_it_leaves_what_one_process_would(job: Job, tmp_path: Path) -> None:
    first = ended(up(job, "--until-end"))
    assert first.code == 0, first.err
    assert f"{3000 * PARTITIONS:,} of {3000 * PARTITIONS:,} records" in first.err
    append(job.source, PARTITIONS, step=1, batches=1)
    second = ended(up(job, "--until-end"))
    assert second.code == 0, second.err
    assert job.made() == job.alone(tmp_path)
    whole = tmp_path / "whole"
    ripple(
        *("run", job.pipeline, "--source", f"log:{job.source}", "--sink", f"log:{whole}"),
        *("--checkpoint-dir", tmp_path / "one"),
    )
    one, many = command("log", "table", whole), command("log", "table", job.output)
    assert many.out == one.out
    assert many.err.splitlines()[-1] == one.err.splitlines()[-1]  # the digest of all partitions


def test_what_dies_is_started_again_and_ctrl_c_ends_all(job: Job) -> None:
    process = up(job)
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if match := re.search(r"worker-1 .*process (\d+)", line):
            break
    assert match is not None, said
    subprocess.run(["kill", "-9", match[1]], check=True)
    for line in process.stderr:
        said.append(line)
        if "worker-1" in line and "was killed by SIGKILL; it is started again" in line:
            break
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    last = ended(process)
    assert last.code == 130, [*said, last.err]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (("--source", "trades.csv"), "trades.csv is no topic: a cluster reads and writes log:"),
        (("--source", "log:{source}/1"), "is one partition: name the topic, log:"),
        (("--source", "log:{source}s"), "cannot read"),
        (("--sink", "out.csv"), "out.csv is no topic"),
        (("--workers", "11"), "more than 10 workers or coordinators need --free-ports"),
    ],
)
def test_what_cannot_be_is_refused_at_once(job: Job, changed: tuple[str, str], why: str) -> None:
    flags = {"--source": f"log:{job.source}", "--sink": f"log:{job.output}", "--dir": "state"}
    flags |= {changed[0]: changed[1].format(source=job.source)}
    refused = command("cluster", "up", job.pipeline, *(x for pair in flags.items() for x in pair))
    assert refused.code == 1
    assert why in refused.only_line
