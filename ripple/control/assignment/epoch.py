"""Partition epochs: the fencing numbers that follow from versions of the assignment.

    epoch = since * 1024 + attempt

``since`` is the version that gave the partition to its owner, so a later owner has a higher epoch,
however many attempts came before. An attempt is one try to claim; a claim with an unknown outcome
is followed by the next attempt. Runs of the command line count epochs by one and stay below.
"""

from __future__ import annotations

from ripple.core.errors import LimitError

ATTEMPTS_MAX = 1024
# Names of objects hold ten digits of the epoch.
VERSION_MAX = 10**10 // ATTEMPTS_MAX - 1


def since_of(epoch: int) -> int:
    """Return the version since which the owner with an epoch has its partition."""
    return epoch // ATTEMPTS_MAX


def epoch_of(since: int, attempt: int) -> int:
    """Return the epoch of the ``attempt``-th claim, from 0, of a partition owned since a version.

    Raises LimitError beyond 1,024 attempts or 9,765,624 versions.
    """
    if not 1 <= since <= VERSION_MAX:
        raise LimitError(
            f"version {since} of the assignment is not from 1 to {VERSION_MAX}: names of objects "
            "hold ten digits of an epoch; start a cluster with a new prefix"
        )
    if not 0 <= attempt < ATTEMPTS_MAX:
        raise LimitError(
            f"attempt {attempt} to claim a partition is not from 0 to {ATTEMPTS_MAX - 1}: give up "
            "and let the partition move"
        )
    return since * ATTEMPTS_MAX + attempt
