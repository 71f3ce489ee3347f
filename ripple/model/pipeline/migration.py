"""Migrations of a fold's state, as users declare them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.arguments import need_text, shown
from ripple.core.errors import PlanError
from ripple.model.pipeline.checks import digest_in, type_text
from ripple.model.pipeline.nodes import Migration, RowTable, is_join, type_of
from ripple.model.pipeline.waiting_nodes import StepScan
from ripple.model.schema.types import List, Logical, bare_type

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from ripple.model.pipeline.draft import Draft


def migration_of(
    draft: Draft, fold: str, function: Callable[[pa.Table], pa.Table] | None, from_digest: str
) -> Migration:
    """Return the migration of a fold or scan from a checkpoint's digest. Raises PlanError."""
    need_text("the fold", fold)
    scans = {one.name: one for one in draft.steps if isinstance(one, StepScan)}
    folds = {one.name: one for one in draft.folds}
    table = folds.get(fold)
    if isinstance(table, RowTable) and table.input in scans:
        raise PlanError(f"its rows follow from the state of a scan: migrate {table.input!r}")
    if is_join(table):
        raise PlanError(
            "a join has no state of its own, only that of its sides: migrate the folds below it"
        )
    if fold in scans:
        _need_plain(scans[fold], function)
    elif fold not in folds:
        own = [name for name, one in folds.items() if not is_join(one)]
        listed = ", ".join([*own, *scans]) or "none"
        raise PlanError(f"there is no such fold before this: the folds are {listed}")
    digest = digest_in(from_digest)
    if any((one.fold, one.from_digest) == (fold, digest) for one in draft.migrations):
        raise PlanError(f"there is a migration from {digest} already")
    if not callable(function) and (function is not None or fold not in scans):
        raise PlanError(f"it takes a function of a table, not {shown(function)}")
    return Migration(fold, digest, function)


def _need_plain(scan: StepScan, function: Callable[[pa.Table], pa.Table] | None) -> None:
    """Raise PlanError without a function for numbers whose unit is in no checkpoint."""
    for field in scan.state_fields if function is None else ():
        of = bare_type(type_of(field))
        if isinstance(of.of if isinstance(of, List) else of, Logical):
            raise PlanError(
                f"the state's field {field.name!r} is {type_text(field.type)}, and a checkpoint "
                "has numbers without their unit: say in a function how they are made, as "
                "lambda states: states if they are as before"
            )
