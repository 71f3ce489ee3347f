"""The owner of a module: the user, whose code is read, or a library, known by name.

Python's own modules, installed distributions and Ripple are libraries. Everything else is the
user's: files in a folder, a notebook, a package installed for editing.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.machinery import ModuleSpec

_INSTALLED = ("site-packages", "dist-packages")


def library_of(module: str | None, file: str | None) -> str | None:
    """Return the package that a library's module is in, None for a module of the user's.

    module: its dotted name. file: where it was loaded from, None if nowhere.
    """
    if not module or module == "__main__":
        return None
    package = module.partition(".")[0]
    return package if _is_library(package, file) else None


def library_of_module(module: str | None) -> str | None:
    """Return the same for a module by its name alone, loaded or not."""
    if not module:
        return None
    loaded = sys.modules.get(module)
    file = getattr(loaded, "__file__", None)
    if loaded is None:
        spec = find(module)
        file = spec.origin if spec is not None and spec.has_location else None
    return library_of(module, file)


def library_of_globals(names: Mapping[str, Any]) -> str | None:
    """Return the same for the module with the globals ``names``."""
    return library_of(names.get("__name__"), names.get("__file__"))


def is_python(package: str) -> bool:
    """Tell whether a library comes with Python."""
    return package in sys.stdlib_module_names


def version_of(package: str) -> str:
    """Return the version of a library, "" if it does not say."""
    version = getattr(sys.modules.get(package), "__version__", None)
    if isinstance(version, str):
        return version
    from importlib import metadata  # noqa: PLC0415 - slow to import

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def is_compiled(module: str) -> bool:
    """Tell whether a module is loaded from a compiled file."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is not None and file.endswith(tuple(EXTENSION_SUFFIXES))


def find(module: str) -> ModuleSpec | None:
    """Return where a module would be loaded from, without importing anything; None if nowhere."""
    found, path = None, None
    parts = module.split(".")
    for count in range(1, len(parts) + 1):
        name = ".".join(parts[:count])
        found = getattr(sys.modules.get(name), "__spec__", None) or _searched(name, path)
        if found is None:
            return None
        path = found.submodule_search_locations
    return found


def _searched(name: str, path: Any) -> ModuleSpec | None:
    for finder in sys.meta_path:
        found = finder.find_spec(name, path)
        if found is not None:
            return found
    return None


@cache
def _is_library(package: str, file: str | None) -> bool:
    if package == "ripple":
        return True
    if file is None:  # built in, frozen, or made while running
        return is_python(package)
    if is_python(package) and file.startswith(_python_folders()):
        return True
    folders = file.replace(os.sep, "/").split("/")[:-1]
    depths = [at for at, name in enumerate(folders) if name == package]
    home = "/".join(folders[: depths[-1]] if depths else folders)
    return any(name in _INSTALLED for name in folders) or _holds_distributions(home)


@cache
def _python_folders() -> tuple[str, str]:
    import sysconfig  # noqa: PLC0415 - it takes its time, and many pipelines have no functions

    return sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")


@cache
def _holds_distributions(folder: str) -> bool:
    """Return whether packages are installed into ``folder``.

    A folder that is worked in may describe a package too, but lacks the record of an installation.
    """
    from importlib import metadata  # noqa: PLC0415 - slow to import

    found = metadata.distributions(path=[folder])
    return any(distribution.read_text("RECORD") is not None for distribution in found)
