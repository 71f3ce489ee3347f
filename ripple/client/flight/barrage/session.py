"""Sessions: a token stands for a client until it is silent for too long."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

from ripple.client.flight.errors import FlightError, Why
from ripple.core.access import EVERYBODY, NOBODY, Caller, Role

if TYPE_CHECKING:
    from ripple.core.access import Access, Known
    from ripple.world.ports import Clock, Random

SESSION_S = 300.0
SESSIONS_MAX = 4096
EXPORTS_MAX = 1024
_TOKEN_BYTES = 32
_EXPORT_BYTES = 5


class Session:
    """A client's session, and its tables by ticket."""

    def __init__(self, token: str, known: Known) -> None:
        self.token = token
        self.known = known
        self.exports: dict[int, str] = {}
        self.used_ns = 0
        self.is_closed = False

    def export(self, ticket: bytes, output: str) -> None:
        """Make a client's ticket stand for a table. Raises FlightError."""
        number = _number(ticket)
        if number is None or number <= 0:
            raise FlightError(Why.WRONG, f"{ticket[:64]!r} is not a client's ticket")
        if number not in self.exports and len(self.exports) >= EXPORTS_MAX:
            raise FlightError(Why.TOO_MUCH, f"{EXPORTS_MAX} tables are open: release some")
        self.exports[number] = output

    def release(self, ticket: bytes) -> None:
        """Release a ticket."""
        self.exports.pop(_number(ticket) or 0, None)

    def exported(self, ticket: bytes) -> str | None:
        """Return the output of a client's ticket, if there is one."""
        return self.exports.get(_number(ticket) or 0)

    def output(self, ticket: bytes) -> str:
        """Return the output of a ticket. Raises FlightError."""
        if ticket.startswith(b"s/"):
            return ticket[2:].decode(errors="replace")
        found = self.exported(ticket)
        if found is None:
            raise FlightError(
                Why.UNKNOWN, f"the ticket {ticket[:64]!r} stands for no table: s/NAME is one"
            )
        return found


class Sessions:
    """All sessions; a session's token is as good as a role's."""

    def __init__(
        self, access: Access | None, clock: Clock, random: Random, *, session_s: float = SESSION_S
    ) -> None:
        """Admit clients that ``access`` knows, or all; expire sessions after ``session_s``."""
        self.session_s = session_s
        self._access = access
        self._clock = clock
        self._random = random
        self._sessions: dict[str, Session] = {}

    def known(self, caller: Caller) -> Known:
        """Return the caller's identity."""
        session = self.of(caller.token)
        if session is not None:
            return session.known
        return EVERYBODY if self._access is None else self._access.known(caller)

    def of(self, token: str | None) -> Session | None:
        """Return the session of a token, if it is valid, and renew it."""
        session = self._sessions.get(token) if token else None
        if session is None or self.is_over(session):
            return None
        session.used_ns = self._clock.monotonic_ns()
        return session

    def enter(self, caller: Caller, authorization: str, *, lasting: bool = True) -> Session:
        """Return the caller's session, or a new one. Raises FlightError.

        lasting: whether a new one outlives this call.
        """
        session = self.of(caller.token)
        if session is None:
            known = self.known(self._shown(caller, authorization))
            if known.role is Role.NOBODY:
                raise FlightError(Why.STRANGER, "no token or certificate identifies the caller")
            session = self._new(known) if lasting else Session("", known)
        session.used_ns = self._clock.monotonic_ns()
        return session

    def close(self, session: Session) -> None:
        """Close a session."""
        session.is_closed = True
        self._sessions.pop(session.token, None)

    def is_over(self, session: Session) -> bool:
        """Return whether a session was closed, or has expired."""
        silent_ns = self._clock.monotonic_ns() - session.used_ns
        return session.is_closed or silent_ns > self.session_s * 1e9

    def _new(self, known: Known) -> Session:
        if len(self._sessions) >= SESSIONS_MAX:
            for session in [one for one in self._sessions.values() if self.is_over(one)]:
                self.close(session)
        if len(self._sessions) >= SESSIONS_MAX:
            raise FlightError(Why.TOO_MUCH, f"there are {SESSIONS_MAX} sessions: close some")
        token = self._random.bytes(_TOKEN_BYTES).hex()
        session = self._sessions[token] = Session(token, known)
        return session

    def _shown(self, caller: Caller, authorization: str) -> Caller:
        """Return the caller of a token in a header, in any of its forms."""
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() == "basic":
            return Caller(self._password(given.strip()), caller.certificates)
        # Clients prefix the token with the name of a handler.
        token = caller.token if scheme.lower() == "bearer" else given.strip() or None
        return Caller(token, caller.certificates)

    def _password(self, given: str) -> str | None:
        """Return the token of a name and a token, if they belong together."""
        try:
            user, _, token = base64.b64decode(given, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        known = NOBODY if self._access is None else self._access.known(Caller(token))
        return token if known.name == user else None


def _number(ticket: bytes) -> int | None:
    """Return the number in a client's ticket."""
    if len(ticket) != _EXPORT_BYTES or not ticket.startswith(b"e"):
        return None
    return int.from_bytes(ticket[1:], "little", signed=True)
