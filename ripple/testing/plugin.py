"""A plugin of pytest: fixtures for pipelines by seed, and differences between results.

pytest loads this module wherever Ripple is installed, also for projects that do not use it: nothing
else of Ripple is imported before a fixture is asked for.
"""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING, Any, Protocol

from ripple.core.extras import needed

with needed("test", "the plugin of pytest"):
    import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.model.pipeline.builder import Pipeline
    from ripple.model.pipeline.plan import Plan
    from ripple.task.result import Result
    from ripple.testing.check import Happening
    from ripple.testing.exploring import Report

SEEDS = 3
_SEED = "ripple_seed"
_RESULT = "ripple.task.result"


class Checked(Protocol):
    """The fixture ``ripple_pipeline``."""

    def __call__(
        self, pipeline: Pipeline | Plan, events: Iterable[Happening], **options: Any
    ) -> Result:
        """Check a pipeline, and return the rows of its outputs."""


class Disturbed(Protocol):
    """The fixtures ``ripple_crash`` and ``ripple_cluster``."""

    def __call__(
        self, pipeline: Pipeline | Plan, events: Iterable[Happening], **options: Any
    ) -> Report:
        """Test a pipeline, and return the report."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--ripple-seeds``."""
    parser.getgroup("ripple").addoption(
        "--ripple-seeds",
        type=_count,
        default=SEEDS,
        metavar="N",
        help=f"run tests with a fixture of Ripple's for each seed below N (default: {SEEDS})",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeat a test that asks for a seed, itself or by another fixture, for each one.

    One that names its seeds itself keeps them.
    """
    if _SEED in metafunc.fixturenames and not any(map(_names_seeds, _parameters(metafunc))):
        seeds = range(metafunc.config.getoption("ripple_seeds"))
        metafunc.parametrize(_SEED, seeds, ids=[f"seed{seed}" for seed in seeds])


def _parameters(metafunc: pytest.Metafunc) -> Iterable[pytest.Mark]:
    return metafunc.definition.iter_markers("parametrize")


def _names_seeds(mark: pytest.Mark) -> bool:
    names = mark.args[0] if mark.args else mark.kwargs.get("argnames", ())
    return _SEED in (
        [name.strip() for name in names.split(",")] if isinstance(names, str) else names
    )


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Show the first differing rows of a compared result."""
    result = getattr(sys.modules.get(_RESULT), "Result", None)
    if op != "==" or result is None or not isinstance(left, result) | isinstance(right, result):
        return None
    from ripple.testing.differences import differences  # noqa: PLC0415 - see above

    lines = differences(left, right)
    return None if lines is None else [f"{_name(left)} == {_name(right)}", *lines]


@pytest.fixture
def ripple_pipeline(ripple_seed: int) -> Checked:
    """Check a pipeline over a few events, and give its rows.

    A function of a pipeline and events, as ``check_pipeline`` takes them: it compares the engine
    with the reference interpreter, in batches and with restarts that the seed draws, and returns
    the result of ``rp.collect``, without markers. options: of ``rp.collect``.
    """

    def checked(pipeline: Pipeline | Plan, events: Iterable[Happening], **options: Any) -> Result:
        import ripple  # noqa: PLC0415 - see above
        from ripple.task.arguments import plan_of  # noqa: PLC0415
        from ripple.testing.check import check_pipeline, rows_by_source  # noqa: PLC0415
        from ripple.testing.sim.chance import Chance  # noqa: PLC0415
        from ripple.testing.written import without_forms  # noqa: PLC0415

        held, chance = [*events], Chance(ripple_seed)
        sizes = sorted({1, 2 + chance.below(6), max(len(held), 1)})
        restarts = sorted({chance.below(len(held)) for _ in range(2)}) if held else []
        check_pipeline(pipeline, held, sizes, restarts=restarts)
        batch_rows = sizes[chance.below(len(sizes))]
        plan = plan_of(pipeline)
        rows = rows_by_source(plan, held)
        return ripple.collect(without_forms(plan), rows, batch_rows=batch_rows, **options)

    return checked


@pytest.fixture
def ripple_crash(ripple_seed: int) -> Disturbed:
    """Crash a pipeline at every effect of the seed's arrangement, and by the seed's faults.

    A function with the parameters of ``crash_test``.
    """

    def disturbed(pipeline: Pipeline | Plan, events: Iterable[Happening], **options: Any) -> Report:
        from ripple.testing.crash.kit import crash_test  # noqa: PLC0415 - see above

        tried = {"seeds": (ripple_seed,), "enumerated": (ripple_seed,), "pairs": 0}
        return crash_test(pipeline, events, **{**tried, **options})

    return disturbed


@pytest.fixture
def ripple_cluster(ripple_seed: int) -> Disturbed:
    """Run a pipeline on the seed's simulated cluster, with its disturbances.

    A function with the parameters of ``cluster_test``.
    """

    def disturbed(pipeline: Pipeline | Plan, events: Iterable[Happening], **options: Any) -> Report:
        from ripple.testing.cluster.kit import cluster_test  # noqa: PLC0415 - see above

        return cluster_test(pipeline, events, **{"seeds": (ripple_seed,), **options})

    return disturbed


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def _name(value: object) -> str:
    return type(value).__name__
