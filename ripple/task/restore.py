"""The start of a task: the newest whole checkpoint not ahead of an output, or the log's start."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from ripple.connectors.inputs import KeepingInputs
from ripple.core import cut as cuts
from ripple.core.errors import InputError, OutputError
from ripple.core.events import CheckpointSkipped
from ripple.engine.machine import Engine
from ripple.engine.migration.adaptation import decide, migrates
from ripple.engine.migration.evolution import Verdict
from ripple.storage.checkpoint.origin import ORIGIN
from ripple.storage.fenced import DamagedError

if TYPE_CHECKING:
    from ripple.connectors.commit_group import OutputStatus
    from ripple.connectors.inputs import Inputs
    from ripple.core.cut import Cut
    from ripple.engine.snapshots.snapshot import Snapshot
    from ripple.model.pipeline.plan import Plan
    from ripple.storage.checkpoint import Checkpoint, Checkpoints
    from ripple.world.ports import Executor

_CHANGED, MIGRATED, _HOLDER = "changed/", "migrated", "holder/"
"""Notes of checkpoints: where code has changed, by output, and where state was migrated; and what
has the rows of an output."""


@dataclass(frozen=True, slots=True)
class StartingPoint:
    """The state from which a task resumes.

    checkpoint: None for a replay from the beginning. start: the cut of the state. skipped:
    newer checkpoints that were skipped. changed: outputs with rows that other code has computed.
    is_migrated: whether a user's migration function has made some of the state.
    """

    checkpoint: Checkpoint | None
    start: Cut
    skipped: tuple[CheckpointSkipped, ...]
    changed: frozenset[str]
    is_migrated: bool = False


async def first_cut(
    listed: tuple[Checkpoint, ...], has_committed: bool, inputs: Inputs
) -> dict[str, int]:
    """Return the cut of the first state: where the very first task began to read.

    has_committed: whether an output has committed anything.
    """
    zero = dict.fromkeys(inputs.names, 0)
    if listed:
        return {name: int(listed[0].notes.get(f"start/{name}", "0")) for name in zero}
    if has_committed:
        return zero
    return dict((await inputs.bounds())[0])


async def notes(
    inputs: Inputs,
    cut: Mapping[str, int],
    start: Mapping[str, int],
    origin: str = "",
    changes: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Return the notes that a checkpoint at ``cut`` needs besides the state; see ``notes_of``.

    changes: as ``changed`` notes them.
    """
    return {**notes_of(await inputs.identities(cut), start, origin), **changes}


def notes_of(
    identities: Mapping[str, str], start: Mapping[str, int], origin: str = ""
) -> dict[str, str]:
    """Return the notes that a checkpoint needs besides the state.

    identities: by input, the identity of the log that was read. start: the cut of the first state.
    origin: the backfill that made the state before that, "" for none.
    """
    return {
        **{f"log/{name}": text for name, text in identities.items()},
        **{f"start/{name}": str(offset) for name, offset in start.items()},
        **({ORIGIN: origin} if origin else {}),
    }


def let_go(inputs: Inputs, present: Sequence[Checkpoint]) -> None:
    """Tell inputs that ask for it which checkpoints count, newest first."""
    if isinstance(inputs, KeepingInputs):
        inputs.stored([(one.cut, _identities(one, inputs)) for one in present])


def _identities(checkpoint: Checkpoint, inputs: Inputs) -> dict[str, str]:
    return {name: checkpoint.notes.get(f"log/{name}", "") for name in inputs.names}


def origin_of(listed: Sequence[Checkpoint]) -> str:
    """Return the backfill that checkpoints come after, "" for none."""
    return listed[0].notes.get(ORIGIN, "") if listed else ""


def changed(listed: Sequence[Checkpoint], base: StartingPoint, shown: Cut) -> dict[str, str]:
    """Return the notes of all changes of code, of checkpoints that come after ``listed``.

    shown: the cut up to which outputs show results of the code before.
    """
    before = listed[0].notes if listed else {}
    kept = {name: at for name, at in before.items() if name.startswith((_CHANGED, MIGRATED))}
    at = cuts.text(shown)
    kept |= {f"{_CHANGED}{output}": at for output in sorted(base.changed)}
    return kept | ({MIGRATED: at} if base.is_migrated else {})


def holders(standings: Mapping[str, OutputStatus]) -> dict[str, str]:
    """Return the notes of the outputs' holders."""
    return {f"{_HOLDER}{output}": one.holder for output, one in standings.items() if one.holder}


def check_holders(listed: Sequence[Checkpoint], standings: Mapping[str, OutputStatus]) -> None:
    """Raise OutputError where an output holds committed rows, and its cut record is gone.

    A checkpoint is stored once its cut was committed, so it is evidence for a missing record. An
    output with another holder of the same name is a new output.
    """
    notes = listed[0].notes if listed else {}
    for output, one in standings.items():
        held = one.holder and notes.get(f"{_HOLDER}{output}") == one.holder
        if held and one.committed is None:
            raise OutputError(
                f"{one.name} has no record of how far it was committed, and checkpoint "
                f"{listed[0].name} at {cuts.text(listed[0].cut)} says that it was: all would be "
                "written there again. Begin anew with another output and without the checkpoints, "
                "or give the pipeline another name"
            )


def changes_of(listed: Sequence[Checkpoint]) -> tuple[dict[str, str], str]:
    """Return the cuts up to which outputs show results of other code, and of a migration.

    The latter is "" if there was none.
    """
    notes = listed[0].notes if listed else {}
    outputs = {
        name.removeprefix(_CHANGED): at for name, at in notes.items() if name.startswith(_CHANGED)
    }
    return outputs, notes.get(MIGRATED, "")


_BEGIN_ANEW = (
    ". If an output is new, leave it out; or name another store and other outputs, to begin with "
    "the first record that is there"
)


class Accepting(Protocol):
    """Knows how far the outputs are."""

    def accepts(self, cut: Cut, *, begins_new: bool = False) -> bool:
        """Return whether an engine at ``cut`` can compute the changes that every output lacks.

        begins_new: whether outputs that hold nothing may begin with the whole table there.
        """
        ...

    def begin_new_at(self, cut: Cut) -> None:
        """Let outputs that hold nothing begin with the whole table at ``cut``."""
        ...


async def restore(
    plan: Plan,
    checkpoints: Checkpoints,
    listed: tuple[Checkpoint, ...],
    outputs: Accepting,
    inputs: Inputs,
    *,
    executor: Executor,
    start: Cut,
    rebuild: Collection[str],
    staged: bool = False,
    make: type[Engine] = Engine,
) -> tuple[Engine, StartingPoint]:
    """Return the engine from which every output's next change can be computed.

    listed: the checkpoints that count. start: the cut of the first state. rebuild: folds that may
    be computed from there. staged: whether the engine has the plan's first stage alone. make: which
    engine it is. Raises ChangedPlanError and MigrationError for a checkpoint of other code,
    InputError when the log does not reach to where it would be read, SnapshotError, StoreError.
    """
    for one in listed:
        cuts.check_inputs(one.cut, inputs.names, f"checkpoint {one.name}")
    checkpoint, snapshot, skipped = await _choose(checkpoints, listed, outputs)
    if skipped and plan.migrations and not staged:
        # State that a function makes is in no log: an output that is new begins with it.
        found = await _choose(checkpoints, listed, outputs, begins_new=True)
        if found[1] is not None and migrates(plan, found[1], rebuild):
            checkpoint, snapshot, skipped = found
            outputs.begin_new_at(found[1].cut)
    if checkpoint is not None and not origin_of(listed):
        is_other = bool(rebuild) or checkpoint.topology_hash != plan.topology_hash
        is_of_here = staged == (checkpoint.stage is not None)
        if is_other and is_of_here and dict(checkpoint.cut) == dict(start):
            checkpoint = None  # of other code, which has read nothing
    if checkpoint is not None and snapshot is not None:
        decided = decide(plan, snapshot, rebuild, staged=staged)
        shown = {output.name for output in plan.outputs}
        changed = frozenset(shown.difference(decided.kept_outputs))
        if decided.snapshot is not None:
            await inputs.check(checkpoint.cut, _identities(checkpoint, inputs))
            # A stored one has them in the order of their names. By theirs ties are broken, and what
            # is divided is numbered.
            cut = {name: decided.snapshot.cut[name] for name in inputs.names}
            snapshot = replace(decided.snapshot, cut=cut)
            engine = await executor.run(make.restore, plan, snapshot)
            verdicts = {node.verdict for node in decided.comparison.nodes}
            is_migrated = Verdict.MIGRATE in verdicts
            return engine, StartingPoint(checkpoint, engine.cut, skipped, changed, is_migrated)
        why = f"{checkpoint.name}: the log is read from its first record"
        skipped = (*skipped, CheckpointSkipped(checkpoint.name, why))
    else:
        changed = frozenset(output.name for output in plan.outputs if rebuild)
    if origin_of(listed):
        why = f" ({'; '.join(one.why for one in skipped)})" if skipped else ""
        raise InputError(
            f"no checkpoint can be used{why}, and what was before {cuts.text(start)} is history "
            "that was backfilled, which is in no log: backfill it again, into another store"
        )
    first, _ = await inputs.bounds()
    if not cuts.is_within(first, start):
        why = f" ({'; '.join(one.why for one in skipped)})" if skipped else ""
        raise InputError(
            f"no checkpoint can be used{why}, and the log does not reach back any more to "
            f"{cuts.text(start)}, from where it would be replayed: it begins at {cuts.text(first)}"
            f"{_BEGIN_ANEW if skipped else ''}"
        )
    engine = make(plan, checkpoints.partition, inputs.names, start=start, staged=staged)
    return engine, StartingPoint(None, start, skipped, changed)


async def _choose(
    checkpoints: Checkpoints,
    listed: tuple[Checkpoint, ...],
    outputs: Accepting,
    *,
    begins_new: bool = False,
) -> tuple[Checkpoint | None, Snapshot | None, tuple[CheckpointSkipped, ...]]:
    skipped: list[CheckpointSkipped] = []
    for one in listed:
        if not outputs.accepts(one.cut, begins_new=begins_new):
            why = f"{one.name} is ahead of what an output holds"
            skipped.append(CheckpointSkipped(one.name, why))
            continue
        try:
            return one, await checkpoints.read(one), tuple(skipped)
        except DamagedError as error:
            skipped.append(CheckpointSkipped(one.name, str(error)))
    return None, None, tuple(skipped)
