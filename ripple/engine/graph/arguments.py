"""Checks of users' arguments to methods of a graph, by name, before a node is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from ripple.core.arguments import need_function, need_text, shown
from ripple.core.errors import GraphError
from ripple.engine.graph.cell import Cell
from ripple.engine.graph.cutoff import Cutoff

# Cutoff, name and serializer, in the order in which cells take them.
Options: TypeAlias = tuple[Cutoff | None, str | None, Callable[[Any], Any] | None]


def need_cell(method: str, argument: str, given: object) -> None:
    """Raise GraphError unless ``given`` is a cell."""
    if not isinstance(given, Cell):
        raise GraphError(f"{method}: {argument} must be a cell, not {shown(given)}")


def need_cells(method: str, argument: str, given: Any) -> list[Cell[Any]]:
    """Return the cells of an iterable; raises GraphError."""
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes, Mapping)):
        raise GraphError(f"{method}: {argument} must be a list of cells, not {shown(given)}")
    cells = list(given)
    for place, cell in enumerate(cells):
        need_cell(method, f"{argument}[{place}]", cell)
    return cells


def need_name(method: str, given: object) -> None:
    """Raise GraphError unless ``given`` is a text or None."""
    if given is not None:
        need_text(f"{method}: name", given, GraphError)


def cell_options(
    method: str,
    *,
    equal: Callable[[Any, Any], bool] | None = None,
    cutoff: Cutoff | None = None,
    name: str | None = None,
    serializer: Callable[[Any], Any] | None = None,
) -> Options:
    """Return the options of every cell; raises GraphError."""
    need_name(method, name)
    if serializer is not None:
        need_function(f"{method}: serializer", serializer, GraphError)
    if cutoff is not None and not isinstance(cutoff, Cutoff):
        raise GraphError(f"{method}: cutoff must be a Cutoff, not {shown(cutoff)}")
    if equal is None:
        return cutoff, name, serializer
    if cutoff is not None:
        raise GraphError(f"{method}: give equal or cutoff, not both")
    need_function(f"{method}: equal", equal, GraphError)
    return Cutoff.equal(equal), name, serializer
