"""Show the versions of Ripple and its libraries, and the installed connectors."""

from __future__ import annotations

import platform
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import ripple
from ripple.cli.lib.output_forms import add_format, write
from ripple.connectors.registry import USES, of_scheme, schemes
from ripple.core.errors import ConnectorError
from ripple.engine.graph import column, node

if TYPE_CHECKING:
    import argparse
    from types import ModuleType

EXAMPLES = (
    "ripple info",
    "ripple info --format json",
)

_CORE: tuple[ModuleType, ...] = (node, column)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    """Print the information; return the exit code."""
    value = {
        "ripple": ripple.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.machine()} {sys.platform}",
        "arrow": pa.__version__,
        "numpy": np.__version__,
        "compiled": is_compiled(),
        "connectors": {scheme: _uses(scheme) for scheme in schemes()},
    }
    write(options.format, value, _print)
    return 0


def _print() -> None:
    build = "compiled" if is_compiled() else "NOT compiled"
    print(f"Ripple v{ripple.__version__}")
    print(f"Python {platform.python_version()} on {platform.machine()} {sys.platform}")
    print(f"Arrow {pa.__version__}, NumPy {np.__version__}")
    print(f"Build: incremental graph + heap-based stabilization, {build} core")
    print("Connectors:")
    for scheme in schemes():
        print(f"  {scheme:<12} {_uses(scheme)}")


def _uses(scheme: str) -> str:
    try:
        connector = of_scheme(scheme)
    except ConnectorError as error:
        return str(error)
    assert connector is not None, "it was listed just now"
    uses = ", ".join(use.replace("_", " ") for use in USES if getattr(connector, use) is not None)
    package = "" if connector.package == "ripple" else f"  ({connector.package})"
    return f"{connector.form:<28} {uses}{package}"


def is_compiled() -> bool:
    """Return whether the graph's core is compiled."""
    return all(str(module.__file__).endswith(tuple(EXTENSION_SUFFIXES)) for module in _CORE)
