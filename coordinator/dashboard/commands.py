"""Commands of the dashboard, parsed from JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordinator.decisions import commands
from ripple.client.dashboard.contract import AskedError
from ripple.control.assignment.version import PARTITIONS_MAX

# The commands, with their arguments.
_COMMANDS: dict[str, tuple[type, tuple[str, ...]]] = {
    "freeze": (commands.Freeze, ()),
    "unfreeze": (commands.Unfreeze, ()),
    "pin": (commands.PinTo, ("partition", "worker")),
    "unpin": (commands.Unpin, ("partition",)),
    "drain": (commands.Drain, ("worker",)),
    "undrain": (commands.Undrain, ("worker",)),
    "move": (commands.Move, ("partition", "worker")),
}


def command_of(said: Mapping[str, Any], who: str) -> commands.Command:
    """Return a command that changes the assignment. Raises AskedError for an unknown one."""
    found = _COMMANDS.get(str(said.get("command")))
    if found is None:
        raise AskedError(f"there is no such command: there are {', '.join(_COMMANDS)}")
    make, names = found
    values: list[Any] = []
    for name in names:
        given = said.get(name)
        if name == "partition" and not (type(given) is int and 0 <= given < PARTITIONS_MAX):
            raise AskedError("partition is not a number from 0")
        if name == "worker" and not (isinstance(given, str) and given):
            raise AskedError("worker is not a name")
        values.append(given)
    reason = said.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        raise AskedError("a command needs a reason: others will ask")
    made: commands.Command = make(*values, f"{reason.strip()} ({who})" if who else reason.strip())
    return made
