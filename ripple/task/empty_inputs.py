"""Empty inputs: without a report rows would wait for their watermarks unnoticed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.events import InputsEmpty
from ripple.model.pipeline.input_names import of_sources, source_of
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from ripple.core.events import EventListener
    from ripple.engine.machine import Engine
    from ripple.model.pipeline.plan import Plan


class EmptyInputs:
    """Reports once, per source, the empty inputs that rows wait for.

    A source with ``idle=`` is reported where reading ends, since only a longer run adds markers.
    The task that reads an input reports it: each receiver of a repartitioned source has all of its
    inputs, and would repeat the report.
    """

    def __init__(
        self,
        plan: Plan,
        names: Iterable[str],
        emit: EventListener,
        *,
        is_awaited: bool,
        is_divided: bool = False,
        received: Container[str] = (),
    ) -> None:
        """names: of the inputs. is_awaited: whether rows of a later stage may wait, too.

        is_divided: whether a source is repartitioned. received: the sources that other
        tasks read, and divide for this one.
        """
        of: dict[str, list[str]] = {}  # a task that divides one source has no input of the others
        for name in of_sources(names):
            of.setdefault(source_of(plan, name).name, []).append(name)
        nodes = [fold.name for fold in plan.folds if fold.timing is not None]
        nodes += [node.name for node in plan.waiting]
        by_source = {source.name: source for source in plan.sources}
        self._timed = {
            name: tuple(inputs)
            for name, inputs in of.items()
            if name not in received and by_source[name].time_field is not None
        }
        self._idle = {name for name in self._timed if by_source[name].idle_ns is not None}
        self._met = [
            (node, sources)
            for node in nodes
            if (sources := [one.name for one in plan.sources_of(node) if one.name in of])
            and any(name in self._timed for name in sources)
        ]
        self._of, self._emit = of, emit
        self._is_awaited, self._is_divided = is_awaited, is_divided
        self._open = set(self._timed) - self._idle  # sources that may have to be reported yet

    def look(self, engine: Engine, *, is_over: bool = False) -> None:
        """Report, where all inputs were read to their present ends. is_over: none is followed."""
        if is_over:
            self._open |= self._idle
        if not self._open or not (self._is_awaited or engine.waiting_count):
            return
        watermarks_ns = engine.watermarks_ns
        for source, inputs, node in self._holding(watermarks_ns):
            if source in self._open:
                self._open.remove(source)
                is_idle = source in self._idle
                self._emit(InputsEmpty(source, inputs, node, is_idle, self._is_divided))
        self._open = {
            source
            for source in self._open
            if any(watermarks_ns[one] == watermark.NONE for one in self._timed[source])
        }

    def _holding(
        self, watermarks_ns: Mapping[str, int]
    ) -> Iterator[tuple[str, tuple[str, ...], str]]:
        for node, sources in self._met:
            inputs = [one for name in sources for one in self._of[name]]
            empty = {one for one in inputs if watermarks_ns[one] == watermark.NONE}
            if not empty or (len(empty) == len(inputs) and not self._is_awaited):
                continue
            for source in sources:
                found = tuple(one for one in self._timed.get(source, ()) if one in empty)
                if found:
                    yield source, found, node
