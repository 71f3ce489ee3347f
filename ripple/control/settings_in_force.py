"""The settings in force of a process, for people: without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.control.secrets import without_secrets

if TYPE_CHECKING:
    from ripple.core.setting import Found


def in_force(found: Found) -> list[dict[str, object]]:
    """Return name, value and origin of each setting, sorted by name."""
    return [
        {
            "name": name,
            "value": without_secrets(str(one.value)),
            "origin": one.origin,
        }
        for name, one in sorted(found.items())
    ]
