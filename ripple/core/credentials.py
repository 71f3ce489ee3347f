"""Credentials for the data ports, made with the cluster's key, which its store holds.

A process that can read the store proves its own name; an external client shows a credential that a
coordinator gives to readers. Neither can be used elsewhere: a process's holds for one side of a
connection, and over TLS for one certificate of the listener.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256

from ripple.core.access import AccessError, Role

READS_S = 3600
KEY_BYTES = 32


class Side(Enum):
    """An end of a connection."""

    CONNECTS = "connects"
    ACCEPTS = "accepts"

    @property
    def other(self) -> Side:
        """The other end."""
        return Side.ACCEPTS if self is Side.CONNECTS else Side.CONNECTS


@dataclass(frozen=True, slots=True)
class Proven:
    """A proven identity; until_s: since 1970, None without expiry."""

    role: Role
    until_s: int | None = None


class Credentials:
    """Makes and checks credentials of one cluster."""

    def __init__(self, key: bytes) -> None:
        """Use the cluster's key. Raises AccessError for one that is too short."""
        if len(key) < KEY_BYTES:
            raise AccessError(f"the cluster's key has {len(key)} bytes, not {KEY_BYTES}")
        self._key = key

    def of_process(self, process: str, side: Side, binding: str) -> str:
        """Return a process's credential for a connection; binding: as of ``Stream``."""
        return f"process {self._proof('process', process, side.value, binding)}"

    def of_reader(self, now_s: int) -> str:
        """Return a credential to follow outputs, for an hour from now."""
        until = str(now_s + READS_S)
        return f"reader {until} {self._proof('reader', until)}"

    def proven(self, shown: str, who: str, side: Side, binding: str, now_s: int) -> Proven:
        """Return the identity of a peer at a side of a connection.

        Raises AccessError for no credential, or one made for another.
        """
        match shown.split(" "):
            case ["process", _]:
                if _is_same(shown, self.of_process(who, side, binding)):
                    return Proven(Role.PROCESS)
                raise AccessError(f"it cannot prove to be {who}: has it the cluster's store?")
            case ["reader", until, proof]:
                if not _is_same(proof, self._proof("reader", until)):
                    raise AccessError("what it shows is not of this cluster")
                if int(until) <= now_s:
                    raise AccessError(
                        "what a coordinator gave it has run out: do the clocks of both agree?"
                    )
                return Proven(Role.READER, int(until))
            case _:
                raise AccessError(
                    "the caller is unknown: a process of the cluster reads its key in the "
                    "store, and a reader of outputs gets a credential from a coordinator"
                )

    def _proof(self, *parts: str) -> str:
        said = "\0".join(("ripple data port", *parts))
        return hmac.new(self._key, _bytes(said), sha256).hexdigest()


def _is_same(shown: str, ours: str) -> bool:
    return hmac.compare_digest(_bytes(shown), _bytes(ours))


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
