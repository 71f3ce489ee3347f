"""The command ``python -m bench``, as a user starts it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]


def bench(*arguments: str, within_s: float = PATIENCE_S) -> subprocess.CompletedProcess[str]:
    """Run it to its end; return its exit code and what it printed."""
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=within_s,
        check=False,
    )
