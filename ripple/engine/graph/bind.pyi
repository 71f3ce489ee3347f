from collections.abc import Callable
from typing import TypeVar

from ripple.core.sexp import Sexp
from ripple.engine.graph.cell import Cell
from ripple.engine.graph.cutoff import Cutoff
from ripple.engine.graph.node import Graph

A = TypeVar("A")
T = TypeVar("T")

BIND_DEPTH_MAX: int

class Bind(Cell[T]):
    def __init__(
        self,
        graph: Graph,
        parent: Cell[A],
        function: Callable[[A], Cell[T]],
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[T], Sexp] | None = None,
    ) -> None: ...
