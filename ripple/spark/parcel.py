"""Transport of a pipeline to executors, with a check that it is the same there."""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ripple
from ripple.core.errors import PlanError
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.division import need_chain, need_no_idle, need_no_table
from ripple.model.pipeline.file import load_plan
from ripple.model.pipeline.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Callable

    Pickler = Callable[[Any], bytes]


class DifferingError(PlanError):
    """Driver and executor have different versions of a pipeline."""


_NO_TABLES = "a watch on Spark, unlike a validation without --watch,"
_NO_MARKERS = "a watch on Spark, or a replay or a validation without markers= (--markers DIR),"


@dataclass(frozen=True, slots=True)
class Parcel:
    """A pipeline as a file's text, or pickled, with its expected hash.

    file: its name, ``FILE.py``, and its folder, from which it may import. chosen: the pipeline's
    name in it. version: of ripple.
    """

    name: str
    topology_hash: str
    version: str = ripple.__version__
    file: str = ""
    text: bytes = b""
    chosen: str = ""
    pickled: bytes = b""

    @classmethod
    def of(
        cls,
        pipeline: str | os.PathLike[str] | Pipeline | Plan,
        dumps: Pickler,
        *,
        chain_for: str = "",
        has_markers: bool = False,
        has_tables: bool = False,
        has_answers: bool = False,
    ) -> Parcel:
        """Pack ``FILE.py[:NAME]``, a pipeline or its plan.

        dumps: a pickler that pickles local classes and functions by value. chain_for: the work on
        Spark that takes neither branches nor several sources. has_markers: whether those of idle
        inputs are read. has_tables: whether tables from topics are. has_answers: whether recorded
        ones are. Raises PlanError and InputError.
        """
        plan = plan_of(pipeline)
        check_plan(
            plan,
            chain_for,
            has_markers=has_markers,
            has_tables=has_tables,
            has_answers=has_answers,
        )
        if isinstance(pipeline, (str, os.PathLike)):
            place = os.fspath(pipeline)
            path, colon, chosen = place.rpartition(":")
            if not colon or os.path.exists(place):
                path, chosen = place, ""
            file = Path(path).resolve()
            return cls(
                plan.name,
                plan.topology_hash,
                file=str(file),
                text=file.read_bytes(),
                chosen=chosen,
            )
        return cls(plan.name, plan.topology_hash, pickled=dumps(plan))

    def plan(self) -> Plan:
        """Return the plan. Raises DifferingError unless it equals the driver's."""
        if ripple.__version__ != self.version:
            raise DifferingError(
                f"the driver has ripple-stream {self.version}, and this executor "
                f"{ripple.__version__}: install the same version everywhere"
            )
        return _opened(self)


def plan_of(pipeline: str | os.PathLike[str] | Pipeline | Plan) -> Plan:
    """Return the plan of ``FILE.py[:NAME]``, of a pipeline, or itself. Raises PlanError."""
    if isinstance(pipeline, (str, os.PathLike)):
        return load_plan(os.fspath(pipeline))
    if not isinstance(pipeline, (Pipeline, Plan)):
        raise PlanError(
            f"a pipeline is FILE.py[:NAME], a Pipeline or its plan, not {type(pipeline).__name__}"
        )
    return pipeline if isinstance(pipeline, Plan) else pipeline.plan()


def check_plan(
    plan: Plan,
    chain_for: str = "",
    *,
    has_markers: bool = False,
    has_tables: bool = False,
    has_answers: bool = False,
) -> None:
    """Raise PlanError for a plan that Spark does not compute. The rest: see ``Parcel.of``."""
    for ask in () if has_answers else plan.asks:
        raise PlanError(
            f"pipeline {plan.name!r}: {ask.name!r} asks, and Spark calls nobody: replay it with "
            "answers= (--answers DIR), the checkpoints of the run that has recorded them, or run "
            "it in one process, with ripple run or rp.run"
        )
    if not has_markers:
        need_no_idle(plan, _NO_MARKERS)
    if not has_tables:
        need_no_table(plan, _NO_TABLES)
    if chain_for:
        need_chain(plan, chain_for)


@lru_cache(maxsize=4)
def _opened(parcel: Parcel) -> Plan:
    plan = _unpickled(parcel) if parcel.pickled else _from_file(parcel)
    assert isinstance(plan, Plan)
    if plan.topology_hash != parcel.topology_hash:
        raise DifferingError(
            f"pipeline {parcel.name!r} is topology {parcel.topology_hash} on the driver, and "
            f"{plan.topology_hash} on this executor: a file that it imports differs, or another "
            "version of Python or of a library is there; ship them with --py-files, or install "
            "the same everywhere"
        )
    return plan


def _unpickled(parcel: Parcel) -> Any:
    try:
        # Spark pickles its own tasks: a process that can change a parcel runs code here already.
        return pickle.loads(parcel.pickled)  # noqa: S301
    except (ImportError, AttributeError) as error:
        raise DifferingError(
            f"pipeline {parcel.name!r} comes from a module that this executor lacks, or has "
            f"another of its name ({error}): name its file, as 'FILE.py:NAME', in place of the "
            "object, or ship the module with --py-files"
        ) from error


def _from_file(parcel: Parcel) -> Plan:
    file = Path(parcel.file)
    if file.parent.is_dir():
        sys.path.insert(0, str(file.parent))
    with tempfile.TemporaryDirectory(prefix="ripple-") as folder:
        copy = Path(folder).resolve() / file.name
        copy.write_bytes(parcel.text)
        try:
            return load_plan(f"{copy}:{parcel.chosen}" if parcel.chosen else str(copy))
        finally:
            sys.path.remove(str(copy.parent))
