"""Incremental checkpoints: their base chain, when to write a full one, which to keep."""

from __future__ import annotations

from collections.abc import Sequence

from ripple.storage.checkpoint.format import Checkpoint
from ripple.storage.fenced import DamagedError

INCREMENTS_MAX_DEFAULT = 8
_INCREMENTS_SHARE = 0.5  # of the full checkpoint's bytes; more would be slow to read


def chain_of(checkpoint: Checkpoint, present: Sequence[Checkpoint]) -> tuple[Checkpoint, ...]:
    """Return the full checkpoint and its increments, in order, up to ``checkpoint``.

    Raises DamagedError when one of them is missing from ``present``.
    """
    named = {one.name: one for one in present}
    chain = [checkpoint]
    while (base := chain[-1].base) is not None:
        below = named.pop(base, None)
        if below is None:
            raise DamagedError(f"checkpoint {chain[-1].name} needs {base}, which is missing")
        chain.append(below)
    return tuple(reversed(chain))


def may_grow(chain: Sequence[Checkpoint], increments_max: int) -> bool:
    """Return whether another increment may follow; if not, the next checkpoint is a full one."""
    whole, *increments = chain
    length_bytes = sum(one.length_bytes for one in increments)
    is_short = len(increments) < increments_max
    return is_short and length_bytes <= _INCREMENTS_SHARE * whole.length_bytes


def without_begun(listed: tuple[Checkpoint, ...], code: str) -> tuple[Checkpoint, ...]:
    """Return ``listed``, newest first, without the newest ones of other code that has read nothing.

    Where code with a new branch was refused, or killed, before it had read anything, the state of
    the code before is still there: that decides what may follow. code: the topology of the plan.
    """
    for at, one in enumerate(listed):
        if one.topology_hash == code or one.stage or one.counters["consumed"]:
            return listed[at:]
    return listed


def kept(present: tuple[Checkpoint, ...], keep: int) -> tuple[Checkpoint, ...]:
    """Return the checkpoints of ``present``, newest first, that retention keeps.

    These are the newest ``keep`` and their bases. If ``keep`` is 2 or more, one of them has another
    base than the newest, if there is such a one: a damaged file must not cost all of them.
    """
    wanted = list(present[:keep])
    if keep > 1:
        wanted += [one for one in present if _root(one, present) != _root(present[0], present)][:1]
    needed = {link.name for one in wanted for link in _links(one, present)}
    return tuple(one for one in present if one.name in needed)


def _root(checkpoint: Checkpoint, present: Sequence[Checkpoint]) -> str:
    return _links(checkpoint, present)[0].name


def _links(checkpoint: Checkpoint, present: Sequence[Checkpoint]) -> tuple[Checkpoint, ...]:
    try:
        return chain_of(checkpoint, present)
    except DamagedError:
        return (checkpoint,)
