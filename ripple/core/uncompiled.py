"""What is said where a module of a clone is imported that was not compiled yet."""

from __future__ import annotations

from importlib.machinery import FileFinder, SourceFileLoader
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class Uncompiled:
    """Finds no module: of one that has a ``.pyx`` alone it says how to compile it.

    The last of ``sys.meta_path`` is asked for what nothing else found.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, _target: object = None) -> None:
        """Return None; raises ``ModuleNotFoundError`` for a module of Ripple with a source."""
        if name.startswith("ripple."):
            sources = (FileFinder(folder, (SourceFileLoader, [".pyx"])) for folder in path or ())
            specs = [one.find_spec(name) for one in sources]
            if any(spec is not None and spec.has_location for spec in specs):
                raise ModuleNotFoundError(
                    f"{name} is not compiled: run 'make install' in the clone of Ripple", name=name
                )
