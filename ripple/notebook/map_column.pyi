from collections.abc import Callable
from typing import Any, TypeVar

from ripple.engine.graph.node import Graph, Node
from ripple.model.expression.expr import Expr
from ripple.model.expression.program import Program
from ripple.notebook.keyed import KeyedColumn
from ripple.notebook.rows import RowType

K = TypeVar("K")
V = TypeVar("V")

class MapColumn(KeyedColumn[K, V]):
    def __init__(
        self,
        graph: Graph,
        parents: list[Node],
        row_type: RowType,
        function: Callable[..., Any],
        name: str | None = None,
        program: Program | None = None,
        inputs: tuple[tuple[str, int, int], ...] = (),
        masked: bool = False,
        blamed: Expr | None = None,
    ) -> None: ...
