"""Packages of an executor, as it tells them to the driver.

The function is sent by its code, since the executor may lack ripple: it uses Python's own library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def told(names: Iterable[bytes]) -> Iterator[str]:
    """Yield, for each executor's name, its Python, ripple's version, and missing packages, as JSON.

    names: by a sender, so that a partition with one element runs where that element is.
    """
    import json  # noqa: PLC0415 - in the executor
    import sys  # noqa: PLC0415 - likewise
    from importlib import import_module  # noqa: PLC0415 - likewise
    from importlib.util import find_spec  # noqa: PLC0415 - likewise

    python = ".".join(map(str, sys.version_info[:2]))
    missing = [one for one in ("pyarrow", "numpy") if find_spec(one) is None]
    ripple = import_module("ripple").__version__ if find_spec("ripple") is not None else None
    for name in names:
        about = {"python": python, "ripple": ripple, "missing": missing}
        yield json.dumps({"name": bytes(name).decode(), **about})
