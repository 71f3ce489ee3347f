"""Start a process without importing pandas."""

from __future__ import annotations

import sys

import pyarrow as pa


class _NoPandas:
    def find_spec(self, fullname: str, path: object, target: object = None) -> None:  # noqa: ARG002 - the signature is importlib's
        if fullname in {"pandas", "dateutil"}:
            raise ModuleNotFoundError(f"no {fullname} in this process", name=fullname)


def keep_pandas_out() -> None:
    """Make Arrow treat pandas as not installed, for the rest of the process.

    Arrow imports pandas and dateutil at the first array made from Python or NumPy values, to
    recognise pandas' types. That takes as long as everything else in a short run. Only for
    commands that run none of the user's code.
    """
    if "pandas" in sys.modules:
        return
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])  # Arrow looks once, and caches the result
    finally:
        sys.meta_path.remove(finder)
