"""Packages that import their modules at first use."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


def imported(
    package: str,
    home_of: Mapping[str, str],
    modules: Mapping[str, str] | None = None,
    hints: str = "",
) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package.

    home_of: by name the module that has it, which is the package itself for a module in it.
    modules: by name a module that lies elsewhere. hints: the module whose ``hint_in_rp`` gives the
    end of the message for an unknown name.
    """

    def find(name: str) -> Any:
        if modules and name in modules:
            return import_module(modules[name])
        if name not in home_of:
            end = import_module(hints).hint_in_rp(name) if hints and name[0] != "_" else ""
            text = f"module {package!r} has no attribute {name!r}{end}"
            raise AttributeError(text, name=name, obj=sys.modules[package])
        home = home_of[name]
        if home == package:
            return import_module(f"{package}.{name}")
        value = getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    return find
