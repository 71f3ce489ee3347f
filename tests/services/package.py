"""Ripple as users get it: the sdist, the wheel that is built from it, and that alone installed."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 12 * PATIENCE_S  # of all that is compiled
SDIST = "from setuptools.build_meta import build_sdist; build_sdist('dist')"


@dataclass(frozen=True)
class Built:
    """What was unpacked from the sdist, with the C that building left there, and the wheel."""

    source: Path
    wheel: Path


def build(folder: Path) -> Built:
    """Build in ``folder``, from the files that git knows, as they are now.

    The wheel holds what a release's does, unoptimized: that compiles in a quarter of the time, and
    whatever is fast or optimized wrongly is found in the tree's own modules.
    """
    checkout = copy_of_the_checkout(folder / "checkout")
    run([sys.executable, "-c", SDIST], checkout)
    (sdist,) = (checkout / "dist").glob("*.tar.gz")
    (folder / "sdist").mkdir()
    run(["tar", "-xzf", str(sdist)], folder / "sdist")
    (source,) = (folder / "sdist").iterdir()
    wheel = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), "."]
    compilers = {"CC": _unoptimized("cc", folder), "CXX": _unoptimized("c++", folder)}
    run([sys.executable, "-m", "pip", "--disable-pip-version-check", *wheel], source, **compilers)
    (wheel_file,) = folder.glob("*.whl")
    return Built(source, wheel_file)


def _unoptimized(compiler: str, folder: Path) -> str:
    """Write a command that compiles like another, and optimizes nothing whatever it is told."""
    command = folder / compiler
    command.write_text(f'#!/bin/sh\nexec {compiler} "$@" -O0\n')
    command.chmod(0o755)
    return str(command)


def copy_of_the_checkout(folder: Path) -> Path:
    """Copy the files that git knows, and those that it does not ignore."""
    listed = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], ROOT)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
    return folder


def install(wheel: Path, folder: Path) -> Path:
    """Install a wheel and what it depends on, nothing else; return where the commands are."""
    run([sys.executable, "-m", "venv", str(folder)], folder.parent)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    run([*pip, "install", "--quiet", str(wheel)], folder.parent)
    return folder / "bin"


def run(command: list[str], folder: Path, commands: Path | None = None, **variables: str) -> str:
    """Run a command that must succeed; return what it printed.

    commands: a folder of commands, the only one to be found beside the system's. variables: of its
    environment, beside those of the test.
    """
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    environment |= variables
    if commands is not None:
        environment["PATH"] = f"{commands}:/usr/bin:/bin"
    ended = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ended.returncode == 0, f"{command}: {ended.stdout}\n{ended.stderr}"
    return ended.stdout
