"""The watermarks of a graph of streams, by the prefixes of its inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ripple.model.pipeline.input_names import source_of
from ripple.model.pipeline.waiting_nodes import Ask, AsofJoin, Finals, IntervalJoin, sides_of
from ripple.testing.reference.interpreter import END_NS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ripple.model.pipeline.plan import Plan
    from ripple.testing.reference.held import Asked
    from ripple.testing.reference.interpreter import Input


class Marks:
    """The marks of streams and folds.

    roots: per node the sources and nodes that its rows begin at. asked: per ask and input its
    waiting rows. Inputs and waiting rows are read at each call.
    """

    def __init__(
        self,
        plan: Plan,
        roots: Mapping[str, set[str]],
        inputs: Mapping[str, Input],
        asked: Mapping[tuple[str, str], Sequence[Asked]],
    ) -> None:
        self._plan, self._roots, self._inputs, self._asked = plan, roots, inputs, asked

    def reached(self, name: str) -> int | None:
        """Return the watermark of a node: the least of the inputs and streams that come to it."""
        come = self._roots[name]
        known = [
            given.watermark_ns
            for name, given in self._inputs.items()
            if source_of(self._plan, name).name in come
        ]
        known += [self.final(node.name) for node in self._plan.waiting if node.name in come]
        return None if None in known else min(ns for ns in known if ns is not None)

    def final(self, name: str) -> int | None:
        """Return up to where the rows of a node that waits are final."""
        (node,) = (node for node in self._plan.waiting if node.name == name)
        if isinstance(node, Finals):
            return self.settled(node.fold, node.lateness_ns)
        if isinstance(node, Ask):
            firsts = {
                name: rows[0].before_ns if rows else self._inputs[name].watermark_ns
                for (ask, name), rows in self._asked.items()
                if ask == node.name
            }
            known = [mark_ns for mark_ns in firsts.values() if mark_ns is not None]
            return min(known) if len(known) == len(firsts) else None
        marks_ns = [self.settled(side.reads, side.lateness_ns) for side in sides_of(node)]
        if isinstance(node, IntervalJoin):
            lasts_ns = [0, node.hi_ns]
            if node.shows_right:
                lasts_ns = [max(0, -node.lo_ns), max(0, node.hi_ns)]
            marks_ns = [
                mark_ns if mark_ns in (None, END_NS) else mark_ns - last_ns
                for mark_ns, last_ns in zip(marks_ns, lasts_ns, strict=True)
            ]
        if isinstance(node, AsofJoin) and marks_ns[1] not in (None, END_NS):
            if node.strategy == "backward":
                marks_ns[1] += node.is_strict
            else:
                marks_ns[1] -= node.tolerance_ns or 0
        return None if None in marks_ns else min(ns for ns in marks_ns if ns is not None)

    def open_reached(self, name: str) -> int | None:
        """Return the watermark of a node, for which the end of inputs is no time."""
        return self._open(lambda marks: marks.reached(name))

    def open_final(self, name: str) -> int | None:
        """Return up to where the rows of a node are final, where the end of inputs is no time."""
        return self._open(lambda marks: marks.final(name))

    def _open(self, of: Callable[[Marks], int | None]) -> int | None:
        """Return a mark; once all inputs have ended, the furthest that the last can have set."""
        whole_ns = of(self)
        if whole_ns != END_NS:
            return whole_ns
        found: list[int] = []
        for name, given in self._inputs.items():
            if given.watermark_ns != END_NS:
                continue
            one = replace(given, watermark_ns=given.before_end_ns)
            inputs = {**self._inputs, name: one}
            alone_ns = of(Marks(self._plan, self._roots, inputs, self._asked))
            if alone_ns is not None and alone_ns != END_NS:
                found.append(alone_ns)
        return max(found, default=None)

    def settled(self, name: str, lateness_ns: int) -> int | None:
        """Return the mark below which no row of a stream comes any more."""
        reached_ns = self.reached(name)
        if reached_ns is None or reached_ns == END_NS:
            return reached_ns
        return reached_ns - lateness_ns
