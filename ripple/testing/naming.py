"""Scenarios by name, so that a failure can be repeated in another process."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType


def name_of(scenario: Any) -> str | None:
    """Return ``MODULE:NAME`` or ``FILE.py:NAME``, None for an object that no module names."""
    if isinstance(scenario, FunctionType):
        return f"{scenario.__module__}:{scenario.__qualname__}"
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is scenario:
                return f"{_place_of(module)}:{name}"
    return None


def find(name: str) -> Any:
    """Return the object that ``name_of`` named. Raises ImportError and AttributeError."""
    place, _, path = name.rpartition(":")
    found: Any = _file(place) if place.endswith(".py") else import_module(place)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _place_of(module: ModuleType) -> str:
    """Return the name of a module in a package, or else its file."""
    file = getattr(module, "__file__", None)
    return module.__name__ if "." in module.__name__ or file is None else file


def _file(path: str) -> ModuleType:
    spec = spec_from_file_location("scenarios_of_user", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # annotations of record classes are looked up there
    sys.path.insert(0, path.rpartition("/")[0] or ".")
    spec.loader.exec_module(module)
    return module
