"""Migrations of a fold's state, as users declare them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.arguments import need_text, shown
from ripple.core.errors import PlanError
from ripple.model.pipeline.checks import digest_in
from ripple.model.pipeline.nodes import Migration, is_join

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from ripple.model.pipeline.draft import Draft


def migration_of(
    draft: Draft, fold: str, function: Callable[[pa.Table], pa.Table], from_digest: str
) -> Migration:
    """Return the migration of a fold from a checkpoint's digest. Raises PlanError."""
    need_text("the fold", fold)
    folds = {one.name: one for one in draft.folds}
    if is_join(folds.get(fold)):
        raise PlanError(
            "a join has no state of its own, only that of its sides: migrate the folds below it"
        )
    if fold not in folds:
        listed = ", ".join(n for n, one in folds.items() if not is_join(one)) or "none"
        raise PlanError(f"there is no such fold before this: the folds are {listed}")
    digest = digest_in(from_digest)
    if any((one.fold, one.from_digest) == (fold, digest) for one in draft.migrations):
        raise PlanError(f"there is a migration from {digest} already")
    if not callable(function):
        raise PlanError(f"it takes a function of a table, not {shown(function)}")
    return Migration(fold, digest, function)
