"""The events: made by the crate ``nexmark``, the same each time, and held in the cache."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from bench.nexmark.results import TOPICS
from tests.services.cache import fetch, kept, needed

GENERATOR = Path(__file__).parent / "generator"
GROUP_ROWS = 1 << 16
WITHIN_S = 600


def events(count: int) -> Path:
    """Return a folder with the first ``count`` events: a Parquet file and one of CSV a topic.

    Raises MissingError where the generator cannot be built.
    """
    return kept(f"nexmark-events-{_version()}-{count}", partial(_generate, count))


def generator() -> Path:
    """Return the program that makes events; cargo builds it, once."""
    return kept(f"nexmark-generator-{_version()}", _build) / "nexmark-events"


def _version() -> str:
    sources = (GENERATOR / "Cargo.lock").read_bytes() + (GENERATOR / "src/main.rs").read_bytes()
    return hashlib.sha256(sources).hexdigest()[:8]


def _build(folder: Path) -> None:
    cargo = needed("cargo", "the generator of Nexmark's events")
    target = folder / "target"
    command = [cargo, "build", "--release", "--locked", "--quiet", "--target-dir", str(target)]
    command += ["--manifest-path", str(GENERATOR / "Cargo.toml")]
    fetch(command, folder, "the generator of Nexmark's events")
    shutil.move(target / "release" / "nexmark-events", folder)
    shutil.rmtree(target)


def _generate(count: int, folder: Path) -> None:
    command = [generator(), str(count), str(folder)]
    subprocess.run(command, check=True, timeout=WITHIN_S)
    for topic in TOPICS:
        table = pa.csv.read_csv(folder / f"{topic}.csv")
        pq.write_table(
            table,
            folder / f"{topic}.parquet",
            compression="lz4",
            row_group_size=GROUP_ROWS,
            use_dictionary=False,
        )
