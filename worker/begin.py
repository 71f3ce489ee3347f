"""The first message to an engine process: the settings of its worker, and what it is itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from ripple.core.setting import InForce, made
from worker.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Begin:
    """process: its name, WORKER/SLOT. deltas: address to listen on.

    code: hashes of the plan and its topology, as the supervisor has loaded it.
    """

    process: str
    deltas: str
    code: tuple[str, str]
    settings: Settings

    def to_message(self) -> dict[str, Any]:
        """Return it as a message."""
        found = self.settings.origins
        return {
            "say": "begin",
            "process": self.process,
            "deltas": self.deltas,
            "code": self.code,
            "settings": {name: [one.value, one.origin] for name, one in found.items()},
        }

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> Self:
        """Parse ``to_message``. Raises SettingsError."""
        found = {name: InForce(*given) for name, given in message["settings"].items()}
        plan_hash, topology_hash = message["code"]
        settings = made(Settings, found)
        return cls(message["process"], message["deltas"], (plan_hash, topology_hash), settings)
