from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from ripple.core.sexp import Sexp
from ripple.engine.graph.cutoff import Cutoff
from ripple.engine.graph.node import Change, Graph, Node

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")

def same_bits(old: object, new: object) -> bool: ...

class Cell(Node, Generic[T]):
    @property
    def value(self) -> T: ...
    @property
    def cutoff(self) -> Cutoff: ...
    def observe(self, callback: Callable[[Change[T]], object]) -> Callable[[], None]: ...

class Leaf(Cell[T]):
    def __init__(
        self,
        graph: Graph,
        value: T,
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[T], Sexp] | None = None,
    ) -> None: ...
    def set(self, value: T) -> None: ...

class Map(Cell[T]):
    def __init__(
        self,
        graph: Graph,
        parent: Cell[A],
        function: Callable[[A], T],
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[T], Sexp] | None = None,
    ) -> None: ...

class Map2(Cell[T]):
    def __init__(
        self,
        graph: Graph,
        first: Cell[A],
        second: Cell[B],
        function: Callable[[A, B], T],
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[T], Sexp] | None = None,
    ) -> None: ...

class MapN(Cell[T]):
    def __init__(
        self,
        graph: Graph,
        parents: Iterable[Cell[Any]],
        function: Callable[..., T],
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[T], Sexp] | None = None,
    ) -> None: ...
    def add_parent(self, parent: Cell[Any]) -> None: ...
    def remove_parent(self, parent: Cell[Any]) -> None: ...

class Fold(Cell[T], Generic[A, T]):
    def __init__(
        self,
        graph: Graph,
        parents: Iterable[Cell[A]],
        init: T,
        function: Callable[[T, A], T],
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[T], Sexp] | None = None,
    ) -> None: ...
    def add_parent(self, parent: Cell[A]) -> None: ...
    def remove_parent(self, parent: Cell[A]) -> None: ...

class IncrFold(Cell[T], Generic[A, T]):
    def __init__(
        self,
        graph: Graph,
        parents: Iterable[Cell[A]],
        init: T,
        add: Callable[[T, A], T],
        remove: Callable[[T, A], T],
        approximate: bool = False,
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[T], Sexp] | None = None,
    ) -> None: ...
    def add_parent(self, parent: Cell[A]) -> None: ...
    def remove_parent(self, parent: Cell[A]) -> None: ...
