"""What a module makes when it is first asked for, since each process that tests imports it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def on_demand(module: dict[str, Any], **makers: Callable[[], Any]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module, which then keeps what it has made.

    module: its globals.
    """

    def made(name: str) -> Any:
        if name not in makers:
            raise AttributeError(f"module {module['__name__']!r} has no attribute {name!r}")
        module[name] = found = makers[name]()
        return found

    return made
