"""Deephaven's own clients, in C++ and in Java, each in a folder of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.services.cache import fetch, kept, needed

VERSION = "42.7"
TICKING = (f"pydeephaven=={VERSION}", f"pydeephaven-ticking=={VERSION}")
SERVER = (f"deephaven-server=={VERSION}",)


def ticking() -> dict[str, str]:
    """Return the environment in which Python has the client in C++. Raises MissingError."""
    return _environment(_installed("pydeephaven-ticking", TICKING))


def server() -> dict[str, str]:
    """Return that in which it has the client in Java, and a JVM. Raises MissingError."""
    needed("java", "Deephaven's server")
    folder = _installed("deephaven-server", SERVER)
    # It keeps things of its own in whatever it takes for the home.
    return _environment(folder) | {"HOME": str(folder)}


def _installed(name: str, wheels: tuple[str, ...]) -> Path:
    def install(folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        fetch([*pip, "--target", str(folder), *wheels], folder, wheels[-1])

    version = f"python-{sys.version_info.major}.{sys.version_info.minor}"
    return kept(f"{name}-{VERSION}-{version}", install)


def _environment(folder: Path) -> dict[str, str]:
    inherited = {name: os.environ[name] for name in ("PATH", "JAVA_HOME") if name in os.environ}
    return inherited | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
