"""Callers of the dashboard, and what each may do."""

from __future__ import annotations

from coordinator.decisions.commands import Drain, Freeze, Move, PinTo, Undrain, Unfreeze, Unpin
from coordinator.service.messages import command_to_bytes
from ripple.control.rpc import methods
from ripple.core.access import Role

TOKENS = {role: f"{role.value}-" + role.value[0] * 32 for role in Role if role is not Role.NOBODY}
WRONG = "wrong-" + "w" * 32
READ = {Role.PROCESS, Role.READER, Role.OPERATOR, Role.ADMIN}
OPERATE = {Role.OPERATOR, Role.ADMIN}
ADMINISTER = {Role.ADMIN}
TAKE_PART = {Role.PROCESS, Role.ADMIN}
COMMANDS = {
    Freeze("why"): ADMINISTER,
    Unfreeze("why"): ADMINISTER,
    PinTo(0, "w", "why"): OPERATE,
    Unpin(0, "why"): OPERATE,
    Drain("w", "why"): OPERATE,
    Undrain("w", "why"): OPERATE,
    Move(0, "w", "why"): OPERATE,
}


# Who may call what, with what request.
METHODS = [
    (methods.STATUS, b"", READ),
    (methods.VIEW, b"", TAKE_PART),
    (methods.CONVERSE, b"", TAKE_PART),
    *((methods.COMMAND, command_to_bytes(one), who) for one, who in COMMANDS.items()),
    (methods.COMMAND, b"\xff no message", OPERATE),
]
