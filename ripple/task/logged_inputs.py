"""A wrapper around inputs, with a log of the pipeline's own as one input more."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, TypeVar

from ripple.connectors.passed_inputs import PassedInputs
from ripple.core.events import EventListener, Remark
from ripple.task.several_sources import is_asking, is_watermarked
from ripple.world.errors import StoreError
from ripple.world.pauses import doubling

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ripple.connectors.inputs import Inputs
    from ripple.core.cut import Cut
    from ripple.engine.machine import Engine
    from ripple.world.ports import Clock

T = TypeVar("T")

PAUSE_S, PAUSE_S_MAX = 1.0, 30.0
FAR = 1 << 62
"""Behind every entry of an input: as a stop it is none."""


class LoggedInputs(PassedInputs, ABC):
    """Inputs, and a log after them that the wrapped inputs know nothing of; see Inputs."""

    _waiting: ClassVar[str]
    """What waits for the store."""

    def __init__(self, inputs: Inputs, name: str, clock: Clock, emit: EventListener) -> None:
        """name: of the log as an input."""
        super().__init__(inputs)
        self._name = name
        self._clock, self._emit = clock, emit
        self._stop: Cut | None = None
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
        if is_watermarked(self._inputs):
            self._inputs.watermarks_ns = asked

    def ask_for(self, engine: Engine) -> None:
        """Call for the rows of an engine, where the wrapped inputs do; see AskingInputs."""
        if is_asking(self._inputs):
            self._inputs.ask_for(engine)

    async def identities(self, cut: Cut) -> dict[str, str]:
        """Return per input a text that identifies the records before ``cut``; see Inputs."""
        return {**await self._inputs.identities(self._own(cut)), self._name: ""}

    async def close(self) -> None:
        """Give up entries that are not in the log yet, which count nowhere; close the inputs."""
        await self.give_up()
        await super().close()

    @abstractmethod
    async def give_up(self) -> None:
        """Add no more entries to the log."""

    @property
    def _log_stop(self) -> int:
        """The offset up to which the log is read."""
        return FAR if self._stop is None else self._stop[self._name]

    async def _stored(self, write: Callable[[], Awaitable[None]]) -> None:
        """Write until the store answers: the outcome of a failed attempt is unknown."""
        for pause_s in doubling(PAUSE_S, PAUSE_S_MAX):
            try:
                await write()
                return
            except StoreError as error:
                why = f"{self._waiting}: {error}"
            self._emit(Remark(why))
            await self._clock.sleep(pause_s)

    def _own(self, by_input: Mapping[str, T]) -> dict[str, T]:
        """Return the entries of the inputs alone."""
        return {name: one for name, one in by_input.items() if name != self._name}
