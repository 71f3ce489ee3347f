"""The identity of the row that a call of an ``.ask`` is for."""

from __future__ import annotations

from contextvars import ContextVar

from ripple.core.errors import NodeError

KEY: ContextVar[str] = ContextVar("ripple.asked")
"""The key of the present call; set in the context of each."""


def asked() -> str:
    """Return the key of the row that the function of an ``.ask`` is called for.

    It is the same in each call for the row, also after a restart and with another owner, and
    another one for each row and ``.ask``: PIPELINE/ASK/INPUT/OFFSET/NUMBER, where NUMBER is that of
    the row in its record. A service that has an effect can take it as an idempotency key. Raises
    NodeError outside of such a call.
    """
    try:
        return KEY.get()
    except LookupError:
        raise NodeError(
            "rp.asked() has a row in the function of an .ask alone, while that is called"
        ) from None
