"""Users, sessions and rate limits of the dashboard. No I/O; the time is an argument."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, NamedTuple

from ripple.core.access import EVERYBODY, Access, Caller, Known, Role, digest_of, greater

if TYPE_CHECKING:
    from collections.abc import Callable

SESSION_S = 12 * 3600.0
SESSIONS_MAX = 1000
# Rate limits in a window: requests, and wrong tokens by address.
WINDOW_S = 10.0
ASKED_MAX = 400
WRONG_MAX = 5
ADDRESSES_MAX = 10_000
READS = Known(Role.READER, "anybody here")


class _Session(NamedTuple):
    known: Known
    until_s: float
    token: bytes | None


class Gate:
    """Keeps sessions and counts.

    access: None without a file of roles: then local users may read, and with ``allow_commands``
    command.
    """

    def __init__(
        self, access: Access | None, random_hex: Callable[[], str], *, allow_commands: bool = False
    ) -> None:
        self._access = access
        self._random_hex = random_hex
        self._anybody = EVERYBODY if allow_commands else READS
        self._sessions: dict[str, _Session] = {}
        self._window = 0.0
        self._asked: dict[str, int] = {}
        self._wrong: dict[str, int] = {}

    @property
    def asks_for_tokens(self) -> bool:
        """Whether users must authenticate."""
        return self._access is not None

    def known(self, caller: Caller, session: str | None, now_s: float) -> Known:
        """Return the user."""
        if self._access is None:
            return self._anybody
        held = self._sessions.get(session or "")
        known = self._access.known(caller)
        if held is None or now_s >= held.until_s or caller.token is not None:
            return known
        # The token may have been removed from the roles meanwhile.
        return greater(known, held.known if held.token is None else self._access.of(held.token))

    def begin(self, known: Known, now_s: float, token: str | None = None) -> str:
        """Return an unguessable name for a new session.

        token: the session begins and ends with it.
        """
        for name, one in list(self._sessions.items()):
            if one.until_s <= now_s or len(self._sessions) >= SESSIONS_MAX:
                del self._sessions[name]
        name = self._random_hex()
        digest = None if token is None else digest_of(token)
        self._sessions[name] = _Session(known, now_s + SESSION_S, digest)
        return name

    def end(self, session: str | None) -> None:
        """Forget a session."""
        self._sessions.pop(session or "", None)

    def is_too_often(self, who: str, now_s: float) -> bool:
        """Count a request; return whether its sender is over the limit.

        who: a known name, else an address, which others may share.
        """
        self._turn(now_s)
        return _counted(self._asked, who) > ASKED_MAX

    def has_guessed(self, address: str, now_s: float) -> bool:
        """Return whether an address has sent too many wrong tokens."""
        self._turn(now_s)
        return self._wrong.get(address, 0) >= WRONG_MAX

    def was_wrong(self, address: str) -> None:
        """Count a wrong token."""
        _counted(self._wrong, address)

    def _turn(self, now_s: float) -> None:
        if now_s - self._window >= WINDOW_S:
            self._window = now_s
            self._asked.clear()
            self._wrong.clear()


def _counted(counts: dict[str, int], address: str) -> int:
    if address not in counts and len(counts) >= ADDRESSES_MAX:
        return ASKED_MAX + 1  # no browser sends so many at once
    counts[address] = counts.get(address, 0) + 1
    return counts[address]


def is_this_machine(host: str) -> bool:
    """Return whether a Host header names this machine, and is not a name of an attacker.

    A foreign page could resolve a name of its own to this machine's address (DNS rebinding).
    """
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    name = name.removeprefix("[").removesuffix("]")
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
