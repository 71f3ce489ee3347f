"""Async tests that need more than an event loop: a simulated world, or a form of a contract."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

Run = Callable[..., object]


def run_by(run: Run, *names: str) -> Callable[[Callable[..., Awaitable[None]]], Run]:
    """Return a decorator that leaves an async test to ``run``.

    run: called with the test, and with ``self`` before it where the test is a method; it calls the
        test with one value for each of ``names``.
    names: the parameters that get these values; the test's other parameters are fixtures.
    """

    def decorate(test: Callable[..., Awaitable[None]]) -> Run:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def runs(*self: Any, **fixtures: Any) -> None:
            async def main(*values: Any) -> None:
                given = dict(zip(names, values, strict=True))
                wanted = {name: given[name] for name in names if name in signature.parameters}
                await test(*self, **wanted, **fixtures)

            run(*self, main)

        fixtures = [one for one in signature.parameters.values() if one.name not in names]
        runs.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return runs

    return decorate
