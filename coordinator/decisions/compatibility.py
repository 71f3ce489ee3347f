"""Compatibility of workers: all members must compute the same, with the same protocol."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from ripple.control.assignment import Assignment, Candidate, Code, Stage, stage_names
from ripple.control.assignment.version import PARTITIONS_MAX
from ripple.control.rpc.membership_messages import MISFIT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

INPUTS_MAX = 1024


def misfit(candidate: Candidate, code: Code, now: Assignment, store: str = "") -> str | None:
    """Return how a candidate differs from a cluster that runs ``code``; None if it fits.

    store: the identity of the coordinators' store, if known.
    """
    found = store_differences(candidate.store, store)
    found += code_differences(candidate.code, code)
    found += stage_differences(candidate.code, now, dict(candidate.inputs))
    inputs = dict(candidate.inputs)
    theirs = () if now.version else stages_of(candidate.code, now.stages[0].partitions, inputs)
    found += input_problems(inputs, now, theirs or now.stages)
    if not found:
        return None
    return f"{candidate.id} {MISFIT}: " + "; ".join(found)


def code_differences(theirs: Code, ours: Code) -> list[str]:
    """Return the differences, each with both values, and where to find their meaning."""
    found = [
        f"its {name} is {one}, the cluster's is {other}"
        for name, one, other in (
            ("protocol", theirs.protocol, ours.protocol),
            ("pipeline", theirs.pipeline, ours.pipeline),
            ("plan hash", theirs.plan_hash, ours.plan_hash),
            ("topology hash", theirs.topology_hash, ours.topology_hash),
        )
        if one != other
    ]
    if theirs.pipeline == ours.pipeline and _is_other_code(theirs, ours):
        found.append(
            "it has other code than the cluster's workers: ripple plan FILE --checkpoint-dir STORE "
            "shows what changes, and what becomes of state"
        )
    named = [{f"schema of {name}": one for name, one in code.schemas} for code in (theirs, ours)]
    found += differences(*named)
    if theirs.ends and ours.ends:  # absent in earlier versions
        found += differences(dict(theirs.ends), dict(ours.ends))
    return found


def _is_other_code(theirs: Code, ours: Code) -> bool:
    return (theirs.plan_hash, theirs.topology_hash) != (ours.plan_hash, ours.topology_hash)


def differences(theirs: Mapping[str, str], ours: Mapping[str, str]) -> list[str]:
    """Return the differences of named values, each with both values."""
    return [
        f"its {name} is {theirs.get(name, 'absent')}, the cluster's is {ours.get(name, 'absent')}"
        for name in sorted(theirs.keys() | ours.keys())
        if theirs.get(name) != ours.get(name)
    ]


def store_differences(theirs: str, ours: str) -> list[str]:
    """Return a message if a worker's store is not the coordinators'."""
    if not (theirs and ours) or theirs == ours:
        return []
    return [
        f"its store is that of {theirs}, the coordinators' is that of cluster {ours}: give the "
        "worker their --store"
    ]


def stages_of(code: Code, partitions: int, inputs: Mapping[str, int]) -> tuple[Stage, ...]:
    """Return the stages of a code; those without a number get so many partitions.

    inputs: the number of partitions of each source; the stage that divides it gets a divisor.
    """
    ends = dict(code.ends)

    def fields(stage: Stage) -> str:
        source = stage_names.divided_in(stage.name)
        return "" if source is None else ends.get(stage_names.records_of(source), "")

    counted = stage_names.counted(code.stages, partitions, inputs)
    return tuple(replace(stage, by=fields(stage)) for stage in counted)


def stage_differences(
    code: Code, now: Assignment, inputs: Mapping[str, int] = MappingProxyType({})
) -> list[str]:
    """Return differences of stages, which are fixed by the first version."""
    theirs = stages_of(code, now.stages[0].partitions, inputs)
    if now.version:
        ours = {stage.name: stage for stage in now.stages}
        codes = dict(code.stages)
        theirs = tuple(
            replace(
                one,
                partitions=codes[one.name] or ours.get(one.name, one).partitions,
                by=one.by if ours.get(one.name, one).by else "",
            )
            for one in theirs
        )
    names, counts = {stage.name for stage in theirs}, [stage.partitions for stage in theirs]
    if len(names) < len(theirs) or not 0 < min(counts, default=0) <= sum(counts) <= PARTITIONS_MAX:
        return [
            f"its stages are {_shown(theirs)}: each has a name, {PARTITIONS_MAX} in all at most"
        ]
    if now.version == 0 or theirs == now.stages:
        return []
    return [f"its stages are {_shown(theirs)}, the cluster's are {_shown(now.stages)}"]


def _shown(stages: tuple[Stage, ...]) -> str:
    shown = (
        f"{stage.name} of {stage.partitions}{stage.by and f' by {stage.by}'}" for stage in stages
    )
    return ", ".join(shown) or "none"


def input_problems(
    counts: Mapping[str, int], now: Assignment, stages: Sequence[Stage] = ()
) -> list[str]:
    """Return why inputs with so many partitions cannot be read.

    stages: those of the first version, before there is one.
    Partition i of an input belongs to i mod P, with P partitions in the stage that reads it. P has
    to divide the input's number of partitions, now and after growth: then no key ever moves.
    """
    found = []
    known = dict(now.inputs)
    for name, count in sorted(counts.items()):
        ours = stage_names.reading(stages or now.stages, name).partitions
        undivided = undivided_by(name, count, ours)
        if undivided is not None:
            found.append(undivided)
        elif count < known.get(name, 0):
            found.append(f"{name} has {count} partitions and had {known[name]}: they do not shrink")
        elif name not in known and len(known) >= INPUTS_MAX:
            found.append(f"{name} is one input more than {INPUTS_MAX}")
    return found


def undivided_by(name: str, count: int, ours: int, *, is_single: bool = False) -> str | None:
    """Return why ``ours`` partitions cannot share an input of ``count``; None if they can.

    is_single: whether it always has one.
    """
    if count > 0 and count % ours == 0:
        return None
    fitting = ", ".join(str(ours * times) for times in (1, 2, 3))
    grown = "" if is_single else f"it may have {fitting} …; or "
    has = f"{count} partition{'' if count == 1 else 's'}"
    always = ", as it always has" if is_single else ""
    return (
        f"{name} has {has}{always}, which {ours} does not divide: {grown}start a new cluster with "
        f"--partitions {_divisor(count, ours)}"
    )


def _divisor(count: int, asked: int) -> int:
    """Return the fitting number of partitions that is nearest to the wanted one.

    Of two, the larger one: a number that is too small cannot grow later.
    """
    fitting = [n for n in range(1, count + 1) if count % n == 0]
    return min(fitting, key=lambda n: (abs(n - asked), -n), default=1)
