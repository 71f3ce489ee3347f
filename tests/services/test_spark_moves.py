"""One pipeline goes from a run to Spark, to a cluster and back, with its state."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ripple.model.pipeline.file import load_plan
from tests.patience import PATIENCE_S
from tests.services.test_spark_run import file
from tests.spark.logs import append, topic_of
from tests.spark.streams import events

pytestmark = [pytest.mark.services, pytest.mark.usefixtures("quick_jvms")]
__all__ = ["file"]
ROOT = Path(__file__).parents[2]


def asked(*words: str) -> tuple[str, str]:
    """Return what a command wrote and said; it must end well."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-m", "ripple.cli.main", *words]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout, done.stdout + done.stderr


def found(pattern: str, text: str) -> str:
    seen = re.search(pattern, text)
    assert seen, text
    return seen.group(1)


def test_a_run_spark_a_cluster_and_a_run_are_one_run(file: str, tmp_path: Path) -> None:
    given = events(4000)
    place = topic_of(tmp_path, load_plan(file), given[:1000], partitions=1, key=["symbol"])
    here = (file, "--source", place, "--sink", f"log:{tmp_path}/out")
    run = ("run", *here, "--batch", "50", "--checkpoint-dir", f"{tmp_path}/state")
    store = ("--store", f"{tmp_path}/state", "--partitions", "1")
    up = ("cluster", "up", *here, *store, "--dir", f"{tmp_path}/cluster", "--workers", "1")

    asked(*run)
    append(place, file, given[1000:2000])
    said = asked("spark", "run", *here, *store, "--batch", "50", "--master", "local[1]")[1]
    assert "partition 0 resumed from 0000000001-" in said, said
    assert "Events processed:  1000\n" in said, said
    by_spark = found(r"Digest: +(\w{16})", said)
    append(place, file, given[2000:3000])
    said = asked(*up, "--until-end", "--free-ports")[1]
    assert "at 2000; replayed 0 events from 2000 to 2000 in " in said, said
    assert f", digest {by_spark}" in said, said
    append(place, file, given[3000:])
    said = asked(*run)[1]
    assert "at 3000; replayed 0 events" in said, said
    assert "Events processed:  1000, 4000 in all" in said, said

    alone = asked(
        "run",
        file,
        "--source",
        place,
        "--sink",
        f"log:{tmp_path}/alone",
        *run[-2:-1],
        f"{tmp_path}/other",
    )[1]
    assert found(r"Digest: +(\w{16})", said) == found(r"Digest: +(\w{16})", alone)
    one, other = (asked("log", "table", f"{tmp_path}/{name}")[0] for name in ("out", "alone"))
    assert one == other
    assert one.count("\n") > 100
