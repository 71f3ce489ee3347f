"""Warnings of mistyped variables of the environment."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ripple.cli.lib.exits import say

if TYPE_CHECKING:
    from collections.abc import Mapping

_PREFIX = "RIPPLE_"
_OF_COMMANDS = (
    "RIPPLE_CONTEXT",
    "RIPPLE_CONTEXTS",
    "RIPPLE_COORDINATOR",
    "RIPPLE_TOKEN_FILE",
    "RIPPLE_TLS_CERTIFICATE",
    "RIPPLE_TLS_KEY",
    "RIPPLE_TLS_AUTHORITY",
)
_MODULES = (
    "worker.settings",
    "coordinator.settings",
    "ripple.client.flight.settings",
    "ripple.connectors.kafka.settings",
)


def warn_of_mistyped(program: str, environment: Mapping[str, str]) -> None:
    """Print a line for each unknown variable that is almost one of a command or a process."""
    if not any(name.startswith(_PREFIX) and name not in _OF_COMMANDS for name in environment):
        return
    # Slow to import, and wanted only where such a variable is set.
    from ripple.core.setting import settings_of  # noqa: PLC0415
    from ripple.core.settings import mistyped  # noqa: PLC0415
    from ripple.storage.store.s3_settings import S3Settings  # noqa: PLC0415

    settings = (
        *(one for name in _MODULES for one in import_module(name).SETTINGS),
        *settings_of(S3Settings),
    )
    for line in mistyped(settings, environment, _OF_COMMANDS):
        say(f"{program}: {line}")
