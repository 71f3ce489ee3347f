"""Objects of a module, made at their first use: each process of a test run imports it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def on_demand(module: dict[str, Any], **makers: Callable[[], Any]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module, by which each object is made once.

    module: its globals.
    """

    def made(name: str) -> Any:
        if name not in makers:
            raise AttributeError(f"module {module['__name__']!r} has no attribute {name!r}")
        module[name] = found = makers[name]()
        return found

    return made
