from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar, overload

import pyarrow as pa

from ripple.core.sexp import Sexp
from ripple.engine.graph.cell import Cell
from ripple.engine.graph.column import Column, Slots
from ripple.engine.graph.cutoff import Cutoff
from ripple.engine.graph.node import Graph
from ripple.model.aggregate.contract import Aggregate
from ripple.notebook.directory import Directory
from ripple.notebook.rows import RowType

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

class KeyedColumn(Column, Generic[K, V]):
    @property
    def directory(self) -> Directory: ...
    @property
    def row_type(self) -> RowType: ...
    def __getitem__(self, key: K) -> V: ...
    def value(self, key: K) -> V: ...
    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: T) -> V | T: ...
    def __contains__(self, key: K) -> bool: ...
    def __iter__(self) -> Iterator[tuple[K, V]]: ...
    def keys(self) -> list[K]: ...  # type: ignore[override]  # as of a dict, so that dict(column) works
    def rows_at(self, slots: Slots) -> list[V]: ...
    def to_arrow(self) -> pa.Table: ...
    @overload
    def fold(
        self,
        what: Aggregate,
        *,
        equal: Callable[[Any, Any], bool] | None = None,
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[Any], Sexp] | None = None,
    ) -> Cell[Any]: ...
    @overload
    def fold(
        self,
        what: T,
        add: Callable[[T, V], T],
        remove: Callable[[T, V], T],
        *,
        approximate: bool = False,
        equal: Callable[[T, T], bool] | None = None,
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[T], Sexp] | None = None,
    ) -> Cell[T]: ...
    @overload
    def sum(
        self: KeyedColumn[K, int],
        field: None = None,
        *,
        equal: Callable[[int, int], bool] | None = None,
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[int], Sexp] | None = None,
    ) -> Cell[int]: ...
    @overload
    def sum(
        self: KeyedColumn[K, float],
        field: None = None,
        *,
        equal: Callable[[float, float], bool] | None = None,
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[float], Sexp] | None = None,
    ) -> Cell[float]: ...
    @overload
    def sum(
        self,
        field: str | None = None,
        *,
        equal: Callable[[Any, Any], bool] | None = None,
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[Any], Sexp] | None = None,
    ) -> Cell[Any]: ...
    def count(
        self,
        field: str | None = None,
        *,
        equal: Callable[[int, int], bool] | None = None,
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[int], Sexp] | None = None,
    ) -> Cell[int]: ...
    def min(
        self,
        field: str | None = None,
        *,
        equal: Callable[[Any, Any], bool] | None = None,
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[Any], Sexp] | None = None,
    ) -> Cell[Any]: ...
    def max(
        self,
        field: str | None = None,
        *,
        equal: Callable[[Any, Any], bool] | None = None,
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[Any], Sexp] | None = None,
    ) -> Cell[Any]: ...
    def mean(
        self,
        field: str | None = None,
        *,
        equal: Callable[[float | None, float | None], bool] | None = None,
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[float | None], Sexp] | None = None,
    ) -> Cell[float | None]: ...

class LeafColumn(KeyedColumn[K, V]):
    def __init__(
        self, graph: Graph, directory: Directory, row_type: RowType, name: str | None = None
    ) -> None: ...
    def __setitem__(self, key: K, row: V) -> None: ...
    def __delitem__(self, key: K) -> None: ...
    @overload
    def set(self, key: K, row: V, /) -> None: ...
    @overload
    def set(self, key: K, /, **fields: Any) -> None: ...
    @overload
    def apply(self, keys: Any, values: Any, /) -> None: ...
    @overload
    def apply(self, keys: Any, /, **arrays: Any) -> None: ...
    def remove(self, key: K) -> bool: ...
    def remove_all(self, keys: Any) -> int: ...
