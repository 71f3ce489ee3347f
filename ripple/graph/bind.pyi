from collections.abc import Callable
from typing import TypeVar

from ripple.graph.cell import Cell
from ripple.graph.cutoff import Cutoff
from ripple.graph.node import Graph
from ripple.sexp import Sexp

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
