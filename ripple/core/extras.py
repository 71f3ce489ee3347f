"""Packages that only some users need: what is missing is named, and how to get it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needed(extra: str, what: str) -> Iterator[None]:
    """Import in this block what the extra ``extra`` installs; ``what`` is what needs it.

    Raises ModuleNotFoundError with the command that installs it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{what} needs {error.name}: pip install 'ripple-stream[{extra}]'", name=error.name
        ) from error
