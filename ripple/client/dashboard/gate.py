"""Who is let in to the dashboard, as what, and how often. No I/O; time is given."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, NamedTuple

from ripple.core.access import EVERYBODY, Access, Caller, Known, Role, digest_of, greater

if TYPE_CHECKING:
    from collections.abc import Callable

SESSION_S = 12 * 3600.0
SESSIONS_MAX = 1000
# Everybody may ask so often in a window; an address may show so many wrong tokens.
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
    """Knows sessions, and counts.

    access: None where there is no file of roles: then whoever is on this machine may read, and with
    ``allow_commands`` command.
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
        """Whether somebody has to say who they are."""
        return self._access is not None

    def known(self, caller: Caller, session: str | None, now_s: float) -> Known:
        """Return who somebody is."""
        if self._access is None:
            return self._anybody
        held = self._sessions.get(session or "")
        known = self._access.known(caller)
        if held is None or now_s >= held.until_s or caller.token is not None:
            return known
        # The token may have been taken out of the roles meanwhile.
        return greater(known, held.known if held.token is None else self._access.of(held.token))

    def begin(self, known: Known, now_s: float, token: str | None = None) -> str:
        """Return the name of a session of somebody, that nobody can guess.

        token: with which it begins, and without which it ends.
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
        """Count a request; return whether there were too many of somebody lately.

        who: a name that is known, else an address, which others may have as well.
        """
        self._turn(now_s)
        return _counted(self._asked, who) > ASKED_MAX

    def has_guessed(self, address: str, now_s: float) -> bool:
        """Return whether an address has shown too many wrong tokens lately."""
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
        return ASKED_MAX + 1  # so many at once are nobody's browsers
    counts[address] = counts.get(address, 0) + 1
    return counts[address]


def is_this_machine(host: str) -> bool:
    """Return whether a Host header names this machine, and no name that somebody chose for it.

    A page elsewhere could give a name of its own this machine's address, and would be let in.
    """
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    name = name.removeprefix("[").removesuffix("]")
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
