"""Access control: roles, and the tokens and certificates that give them.

A file of roles names tokens and the names in client certificates::

    [reader]
    certificates = ["grafana"]

    [guest.tokens]
    bob = "as long; a guest reads the listed outputs alone, through a gateway"

    [guest.outputs]
    bob = ["vwap"]

    [operator.tokens]
    alice = "at least 32 characters, such as `openssl rand -hex 32` writes"

    [process]
    certificates = ["worker", "coordinator"]  # these two, where nothing is said

Without such a file every caller may do everything: with TLS, each holder of a trusted certificate,
and without it each process on this machine.
"""

from __future__ import annotations

import hmac
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from types import MappingProxyType
from typing import Any

from ripple.core.errors import RippleError

TOKEN_CHARACTERS_MIN = 32
TOKEN_CHARACTERS_MAX = 512
FILE_BYTES_MAX = 1 << 20
PROCESSES = ("coordinator", "worker")
EVERYBODYS = ("localhost", "127.0.0.1", "::1")


class AccessError(RippleError):
    """The file of roles cannot be used; the message says why, and never a token."""


class Role(Enum):
    """A caller's role. READER and later ones do not include PROCESS.

    GUEST: some outputs, by name; no right of its own, so that it is refused everywhere else.
    """

    NOBODY = "nobody"
    GUEST = "guest"
    PROCESS = "process"
    READER = "reader"
    OPERATOR = "operator"
    ADMIN = "admin"


class Right(Enum):
    """A right of a role."""

    READ = "read"
    OPERATE = "operate"
    ADMINISTER = "administer"
    TAKE_PART = "take part"


RIGHTS: Mapping[Role, frozenset[Right]] = {
    Role.NOBODY: frozenset(),
    Role.GUEST: frozenset(),
    Role.PROCESS: frozenset({Right.TAKE_PART, Right.READ}),
    Role.READER: frozenset({Right.READ}),
    Role.OPERATOR: frozenset({Right.READ, Right.OPERATE}),
    Role.ADMIN: frozenset({Right.READ, Right.OPERATE, Right.ADMINISTER, Right.TAKE_PART}),
}
_RANK = (Role.NOBODY, Role.GUEST, Role.PROCESS, Role.READER, Role.OPERATOR, Role.ADMIN)


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller: its token, and the names in its trusted certificate."""

    token: str | None = None
    certificates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Known:
    """A known caller: a role, and a name for logs. outputs: those that a guest may read."""

    role: Role
    name: str = ""
    outputs: frozenset[str] = frozenset()

    def may(self, right: Right) -> bool:
        """Return whether the role has this right."""
        return right in RIGHTS[self.role]

    def reads(self, output: str) -> bool:
        """Return whether the caller may read an output."""
        return self.may(Right.READ) or output in self.outputs


def greater(one: Known, other: Known) -> Known:
    """Return the one of two with the greater role, the first one of equals."""
    return other if _RANK.index(other.role) > _RANK.index(one.role) else one


NOBODY = Known(Role.NOBODY)
# Of every caller, without a file of roles.
EVERYBODY = Known(Role.ADMIN, "anybody here")


class Access:
    """A file of roles. Tokens are kept as digests, and compared in constant time."""

    def __init__(
        self,
        tokens: Mapping[str, tuple[Role, str]],
        certificates: Mapping[str, Role],
        outputs: Mapping[str, frozenset[str]] = MappingProxyType({}),
    ) -> None:
        """Know tokens, each a role and a name, and the names of certificates.

        outputs: those of each guest, by its name.
        """
        self._outputs = dict(outputs)
        self._tokens = [(digest_of(token), *known) for token, known in tokens.items()]
        self._certificates = dict(certificates)

    def known(self, caller: Caller) -> Known:
        """Return a caller's identity: the greatest role of token and certificate."""
        found = NOBODY if caller.token is None else self.of(digest_of(caller.token))
        for name in caller.certificates:
            found = greater(found, self._as(self._certificates.get(name, Role.NOBODY), name))
        return found

    def of(self, given: bytes) -> Known:
        """Return the holder of a token, by its digest."""
        found = NOBODY
        for digest, role, name in self._tokens:  # all of them, in constant time
            if hmac.compare_digest(digest, given):
                found = self._as(role, name)
        return found

    def _as(self, role: Role, name: str) -> Known:
        outputs = self._outputs.get(name, frozenset()) if role is Role.GUEST else frozenset()
        return Known(role, name, outputs)


def token_from(data: bytes) -> str:
    """Return the token in a file that holds one. Raises AccessError, which does not show it."""
    token = data.strip()
    if not token.isascii() or not token.decode().isprintable():
        raise AccessError("holds no token: it is not a line of plain characters")
    return token.decode()


def access_of(data: bytes, path: str) -> Access:
    """Read a file of roles. Raises AccessError."""
    roles = {role.value: role for role in Role if role is not Role.NOBODY}
    tokens: dict[str, tuple[Role, str]] = {}
    outputs: dict[str, frozenset[str]] = {}
    certificates = dict.fromkeys(PROCESSES, Role.PROCESS)
    for name, said in _parsed(data, path).items():
        if name not in roles or not isinstance(said, dict):
            raise AccessError(f"{path} has {name}, which is none of [{'], ['.join(roles)}]")
        taken = {"tokens", "certificates", *(["outputs"] if name == Role.GUEST.value else [])}
        for unknown in sorted(set(said) - taken):
            raise AccessError(f"{path}, [{name}] has {unknown}, an unknown key")
        role = roles[name]
        if role is Role.PROCESS and "certificates" in said:
            for one in PROCESSES:
                certificates.pop(one, None)
        _take_tokens(tokens, said.get("tokens", {}), role, path)
        for one in _names(said.get("certificates", []), f"{path}, [{name}]"):
            if one in EVERYBODYS:
                raise AccessError(
                    f"{path} gives {one} the role {name}, which every certificate of a machine may "
                    "name: give a name of its own"
                )
            if certificates.get(one, role) not in (role, Role.PROCESS):
                raise AccessError(f"{path} gives the certificate of {one} two roles")
            certificates[one] = role
        if role is Role.GUEST:
            outputs = _outputs(said.get("outputs", {}), path)
    guests = [name for role, name in tokens.values() if role is Role.GUEST]
    guests += [name for name, role in certificates.items() if role is Role.GUEST]
    _check_guests(guests, outputs, path)
    return Access(tokens, certificates, outputs)


def _parsed(data: bytes, path: str) -> dict[str, Any]:
    if len(data) > FILE_BYTES_MAX:
        raise AccessError(f"{path} has more than {FILE_BYTES_MAX} bytes")
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        raise AccessError(f"{path} is no text in UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        # What it says of the place is enough: the line may hold a token.
        raise AccessError(f"{path} is no TOML{_place(str(error))}") from None


def _take_tokens(tokens: dict[str, tuple[Role, str]], given: Any, role: Role, path: str) -> None:
    where = f"{path}, [{role.value}.tokens]"
    if not isinstance(given, dict):
        raise AccessError(f"{where} is no table of names and tokens")
    for name, token in given.items():
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            raise AccessError(f"{where}: what {name} has is no text of plain characters")
        if not TOKEN_CHARACTERS_MIN <= len(token) <= TOKEN_CHARACTERS_MAX:
            raise AccessError(
                f"{where}: the token of {name} has {len(token)} characters, not "
                f"{TOKEN_CHARACTERS_MIN} to {TOKEN_CHARACTERS_MAX}: openssl rand -hex 32 makes one"
            )
        if token in tokens:
            raise AccessError(f"{where}: {name} has the token of {tokens[token][1]}")
        tokens[token] = (role, name)


def _check_guests(guests: Sequence[str], outputs: Mapping[str, object], path: str) -> None:
    where = f"{path}, [guest.outputs]"
    for name in guests:
        if name not in outputs:
            raise AccessError(f"{where} has no outputs of {name}: name those that it may read")
    for name in outputs:
        if name not in guests:
            raise AccessError(
                f"{where} has {name}, which is no guest: give it a token in [guest.tokens]"
            )


def _outputs(given: Any, path: str) -> dict[str, frozenset[str]]:
    where = f"{path}, [guest.outputs]"
    if not isinstance(given, dict):
        raise AccessError(f"{where} is no table of names and outputs")
    found = {name: _names(outputs, where, name) for name, outputs in given.items()}
    for name, outputs in found.items():
        if not outputs:
            raise AccessError(f"{where}: {name} has no outputs: name those that it may read")
    return {name: frozenset(outputs) for name, outputs in found.items()}


def _names(given: Any, where: str, what: str = "certificates") -> Sequence[str]:
    if isinstance(given, list) and all(isinstance(one, str) and one for one in given):
        return given
    raise AccessError(f"{where}: {what} is no list of names")


def _place(message: str) -> str:
    found = message.rpartition("(at ")[2]
    return f" (at {found}" if found != message else ""


def digest_of(token: str) -> bytes:
    """Return a token's digest; a token that is too long gets a digest of no token."""
    return sha256(token[: TOKEN_CHARACTERS_MAX + 1].encode(errors="surrogatepass")).digest()
