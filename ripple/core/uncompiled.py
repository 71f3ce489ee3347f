"""What is said where a module of a clone is imported that was not compiled yet."""

from __future__ import annotations

import os
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
            source = f"{name.rpartition('.')[2]}.pyx"
            if any(os.path.exists(os.path.join(folder, source)) for folder in path or ()):
                raise ModuleNotFoundError(
                    f"{name} is not compiled: run 'make install' in the clone of Ripple", name=name
                )
