"""Selection of a checkpoint, and of one of its folds, by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ripple.storage.checkpoint.errors import CheckpointError
from ripple.storage.checkpoint.format import Checkpoint, fold_name


def named(present: Sequence[Checkpoint], name: str | None) -> Checkpoint:
    """Return the checkpoint of that name, the latest without one. Raises CheckpointError."""
    for one in present:
        if name in (None, one.name):
            return one
    names = ", ".join(one.name for one in present) or "none"
    such = "checkpoint" if name is None else f"checkpoint {name}"
    raise CheckpointError(f"there is no {such}: there are {names}")


def fold_named(node_keys: Iterable[str], name: str | None, how: str) -> str:
    """Return the node key of the named fold; without a name, of the only one.

    how: the flag or argument that names a fold, for the error. Raises CheckpointError.
    """
    keys = {fold_name(node_key): node_key for node_key in node_keys}
    if name is None and len(keys) == 1:
        return next(iter(keys.values()))
    if name is None or name not in keys:
        raise CheckpointError(f"choose a fold with {how}: there are {', '.join(keys)}")
    return keys[name]
