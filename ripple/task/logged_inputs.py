"""A wrapper around inputs, with a log of the pipeline's own as one input more."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ripple.connectors.passed_inputs import PassedInputs
from ripple.task.several_sources import AskingInputs, WatermarkedInputs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ripple.connectors.inputs import Inputs
    from ripple.engine.machine import Engine

T = TypeVar("T")


class LoggedInputs(PassedInputs):
    """Inputs, and a log after them that the wrapped inputs know nothing of; see Inputs."""

    def __init__(self, inputs: Inputs, name: str) -> None:
        """name: of the log as an input."""
        super().__init__(inputs)
        self._name = name
        self._watermarks_ns: Callable[[], Mapping[str, int]] = dict

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs, and the log after them."""
        return (*self._inputs.names, self._name)

    @property
    def watermarks_ns(self) -> Callable[[], Mapping[str, int]]:
        """Returns the engine's watermarks by input, at the cut of ``next``; a task sets it."""
        return self._watermarks_ns

    @watermarks_ns.setter
    def watermarks_ns(self, asked: Callable[[], Mapping[str, int]]) -> None:
        self._watermarks_ns = asked
        if isinstance(self._inputs, WatermarkedInputs):
            self._inputs.watermarks_ns = asked

    def ask_for(self, engine: Engine) -> None:
        """Call for the rows of an engine, where the wrapped inputs do; see AskingInputs."""
        if isinstance(self._inputs, AskingInputs):
            self._inputs.ask_for(engine)

    def _own(self, by_input: Mapping[str, T]) -> dict[str, T]:
        """Return the entries of the inputs alone."""
        return {name: one for name, one in by_input.items() if name != self._name}
