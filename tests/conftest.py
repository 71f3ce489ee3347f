"""Settings that every test shares."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.examples import EXAMPLES
from tests.patience import TEST_S

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

# Some tests fork, and what gRPC does before a fork waits for ever for threads of tests before them.
# It is asked for when gRPC is loaded, and pytest loads this first.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# What a test starts ignores what this process does: a shell lets its background ignore some, and
# a command that is called in this process lets nothing undo what it has finished. One that was
# refused leaves the handler of its loop, which is closed by then, and uvloop keeps it.
HANDLERS = {
    signal.SIGHUP: signal.SIG_DFL,
    signal.SIGINT: signal.default_int_handler,
    signal.SIGQUIT: signal.SIG_DFL,
    signal.SIGTERM: signal.SIG_DFL,
}

# A machine under load must not turn a slow example into a failure; the example that fails a test
# is printed in a form that repeats it. A change is judged by the same examples each time; `make
# wide` tries others.
settings.register_profile(
    "ripple",
    max_examples=10 if EXAMPLES == 1 else 30 * EXAMPLES,
    deadline=None,
    derandomize=EXAMPLES == 1,
    print_blob=True,
)
settings.load_profile("ripple")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Let no test begin with what another one has made of signals."""
    for number, handler in HANDLERS.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """End an async test that hangs."""
    if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
        item.obj = partial(_ended, item.obj)


async def _ended(test: Callable[..., Awaitable[None]], **given: object) -> None:
    async with asyncio.timeout(TEST_S):
        await test(**given)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without garbage collection, which then passes over what was collected for good.

    It would go through all modules and tests again and again: a tenth of the time of a run.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture
def unshrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a failure that is wanted be told as it was found: no shorter one is looked for."""
    monkeypatch.setattr(sys.modules["ripple.testing.exploring"], "SHRINK_RUNS_MAX", 0)
