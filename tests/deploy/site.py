"""The site, built by Zensical from the pages of ``docs/site/build.py``: ``make site``."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.deploy import tools
from tests.deploy.compose import ROOT


def lay_out(folder: Path) -> None:
    """Write the pages into a new folder."""
    tools.run([sys.executable, ROOT / "docs/site/build.py", folder])


def make(folder: Path) -> Path:
    """Make the site of what was laid out; any warning is an error. Raises MissingError."""
    found = tools.of_python(tools.ZENSICAL)
    ask = [sys.executable, "-m", "zensical", "build", "--strict"]
    tools.run([*ask, "--config-file", folder / "zensical.toml"], packages=found)
    return folder / "site"


if __name__ == "__main__":
    there = Path(sys.argv[1])
    shutil.rmtree(there, ignore_errors=True)
    lay_out(there)
    sys.stdout.write(f"{make(there) / 'index.html'}\n")
