"""Connectors that other packages bring, as entry points: a scheme, and where its Connector is.

They are looked for when a scheme is not Ripple's own, and each time anew.
"""

from __future__ import annotations

import pkgutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ripple.connectors.connector import Connector
from ripple.core.errors import ConnectorError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

GROUP = "ripple.connectors"


def schemes() -> set[str]:
    """Return the schemes."""
    return _entries().names


def connector(scheme: str) -> Connector | None:
    """Return the connector of a scheme, None if no package has it; raises ConnectorError."""
    entries = tuple(_entries().select(name=scheme))
    if len(entries) > 1:
        packages = " and ".join(sorted(map(_package_of, entries)))
        raise ConnectorError(f"the scheme {scheme!r} is of {packages}: uninstall all but one")
    return _connector_of(entries[0]) if entries else None


def load(scheme: str, package: str, name: str) -> Any:
    """Return the object named ``name``, of the form ``package.module:attribute``.

    Raises ConnectorError, which names the package, for any error of the module.
    """
    try:
        return pkgutil.resolve_name(name)
    except Exception as error:
        raise ConnectorError(
            f"connector {scheme!r} of {package}: cannot load {name}: {type(error).__name__}: "
            f"{error}"
        ) from error


def _entries() -> EntryPoints:
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow to import, rarely wanted

    return entry_points(group=GROUP)


def _connector_of(entry: EntryPoint) -> Connector:
    scheme, package = entry.name, _package_of(entry)
    found = load(scheme, package, entry.value)
    if not isinstance(found, Connector):
        raise ConnectorError(
            f"connector {scheme!r} of {package}: {entry.value} is of type {type(found).__name__}, "
            "and no ripple.connectors.connector.Connector"
        )
    if found.scheme != scheme:
        raise ConnectorError(
            f"connector {scheme!r} of {package}: {entry.value} has the scheme {found.scheme!r}"
        )
    return replace(found, package=package)


def _package_of(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown package"
