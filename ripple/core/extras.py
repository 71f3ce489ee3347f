"""Optional packages: an error names the missing one, and how to install it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needed(extra: str, what: str) -> Iterator[None]:
    """Import packages of the extra ``extra`` in this block; ``what`` names the feature.

    Raises ModuleNotFoundError with the command that installs it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{what} needs {error.name}: pip install 'ripple-stream[{extra}]', or in a clone "
            f"make install EXTRAS={extra}",
            name=error.name,
        ) from error
