"""A program where a package is missing; ``fork_server`` forks for it and has no such package."""

from __future__ import annotations

import sys
from importlib import import_module


def main() -> int:
    absent, module, *given = sys.argv[1:]
    assert absent not in sys.modules
    sys.modules[absent] = None  # type: ignore[assignment]  # the import of it fails
    return int(import_module(module).main(given))
