"""Starting a process that has no use for pandas without importing it."""

from __future__ import annotations

import sys

import pyarrow as pa


class _NoPandas:
    def find_spec(self, fullname: str, path: object, target: object = None) -> None:  # noqa: ARG002 - the signature is importlib's
        if fullname in {"pandas", "dateutil"}:
            raise ModuleNotFoundError(f"no {fullname} in this process", name=fullname)


def keep_pandas_out() -> None:
    """Make Arrow believe, for the rest of the process, that pandas is not installed.

    Arrow imports pandas and what its dates are made of, where they are installed, at the first
    array made from Python or NumPy values, to recognise pandas' own types. That takes as long as
    everything else in a short run.
    Only for commands whose process runs none of the user's code.
    """
    if "pandas" in sys.modules:
        return
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])  # Arrow looks once, and remembers
    finally:
        sys.meta_path.remove(finder)
