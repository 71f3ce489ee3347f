"""On what a run was made."""

from __future__ import annotations

import importlib.util
import os
import platform
import subprocess
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

CORE = (
    "ripple.engine.graph.node",
    "ripple.engine.graph.column",
    "ripple.model.aggregate.exact",
    "ripple.core.hashing",
)
PACKAGES = ("numpy", "pyarrow", "polars", "duckdb")


def describe(date: str) -> dict[str, str]:
    """Return what a reader must know to judge the figures, by name."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "date": date,
        "commit": _commit(),
        "core": "compiled" if all(map(_compiled, CORE)) else "NOT COMPILED",
        "machine": f"{_cpu()}, {os.cpu_count()} cores, {memory_bytes / 2**30:.0f} GiB",
        "load": f"{os.getloadavg()[0]:.2f} when started (1 minute)",
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        **{name: _version(name) for name in PACKAGES},
    }


def _commit() -> str:
    def git(*arguments: str) -> str:
        command = ["git", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        dirty = ", with changes" if git("status", "--porcelain", "--untracked-files=no") else ""
        return git("rev-parse", "--short", "HEAD") + dirty
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _compiled(module: str) -> bool:
    found = importlib.util.find_spec(module)
    origin = found.origin if found else None
    return origin is not None and origin.endswith(tuple(EXTENSION_SUFFIXES))


def _cpu() -> str:
    cpus = Path("/proc/cpuinfo")
    if cpus.exists():
        for line in cpus.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
