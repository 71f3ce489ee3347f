from collections.abc import Callable
from typing import Any, TypeVar

from ripple.core.sexp import Sexp
from ripple.engine.graph.cell import Cell
from ripple.engine.graph.cutoff import Cutoff
from ripple.notebook.folds import BoundAggregate
from ripple.notebook.keyed import KeyedColumn

T = TypeVar("T")
V = TypeVar("V")

class ColumnFold(Cell[T]):
    def again(self) -> T: ...

class RowCount(ColumnFold[int]):
    def __init__(
        self,
        column: KeyedColumn[Any, Any],
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[int], Sexp] | None = None,
    ) -> None: ...

class FloatSum(ColumnFold[float]):
    def __init__(
        self,
        column: KeyedColumn[Any, Any],
        field: int,
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[float], Sexp] | None = None,
    ) -> None: ...

class IntSum(ColumnFold[int]):
    def __init__(
        self,
        column: KeyedColumn[Any, Any],
        field: int,
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[int], Sexp] | None = None,
    ) -> None: ...

class AggregateFold(ColumnFold[Any]):
    def __init__(
        self,
        column: KeyedColumn[Any, Any],
        aggregate: BoundAggregate,
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[Any], Sexp] | None = None,
    ) -> None: ...

class FunctionFold(ColumnFold[T]):
    def __init__(
        self,
        column: KeyedColumn[Any, V],
        init: T,
        add: Callable[[T, V], T],
        remove: Callable[[T, V], T],
        approximate: bool = False,
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[T], Sexp] | None = None,
    ) -> None: ...
