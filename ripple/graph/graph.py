"""The graph that users build: leaves, and cells computed from cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from ripple.graph import node
from ripple.graph.bind import Bind
from ripple.graph.cell import Cell, Fold, IncrFold, Leaf, Map, Map2, MapN
from ripple.graph.cutoff import Cutoff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ripple.sexp import Sexp

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")


class Graph(node.Graph):
    """An incremental graph: set leaves, :meth:`stabilize`, read values.

    ``now`` is the clock that times stabilizations, in nanoseconds; nodes never see it. All
    methods that make a cell take ``equal`` (old and new count as the same value: nothing above
    is recomputed) or a ``cutoff``, a ``name`` for messages and exports, and a ``serializer``
    (value to S-expression) for introspection. They compute the first value at once and raise
    NodeError if the function fails; they raise GraphError for parents of another graph.

    Functions of cells get values and return a new one: they must be pure, and must not change
    what they are given. A graph belongs to one thread.
    """

    __slots__ = ()

    def leaf(
        self,
        value: T,
        *,
        equal: Callable[[T, T], bool] | None = None,
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[T], Sexp] | None = None,
    ) -> Leaf[T]:
        """Return a cell whose value is set from outside with ``leaf.set(value)``."""
        return Leaf(self, value, _cutoff(equal, cutoff), name, serializer)

    def map(
        self,
        parent: Cell[A],
        function: Callable[[A], T],
        *,
        equal: Callable[[T, T], bool] | None = None,
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[T], Sexp] | None = None,
    ) -> Cell[T]:
        """Return ``function(parent)``."""
        return Map(self, parent, function, _cutoff(equal, cutoff), name, serializer)

    def map2(
        self,
        first: Cell[A],
        second: Cell[B],
        function: Callable[[A, B], T],
        *,
        equal: Callable[[T, T], bool] | None = None,
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[T], Sexp] | None = None,
    ) -> Cell[T]:
        """Return ``function(first, second)``."""
        return Map2(self, first, second, function, _cutoff(equal, cutoff), name, serializer)

    def map_n(
        self,
        parents: Iterable[Cell[Any]],
        function: Callable[..., T],
        *,
        equal: Callable[[T, T], bool] | None = None,
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[T], Sexp] | None = None,
    ) -> MapN[T]:
        """Return ``function(*parents)``; ``add_parent``, ``remove_parent`` change the list."""
        return MapN(self, parents, function, _cutoff(equal, cutoff), name, serializer)

    def fold(
        self,
        parents: Iterable[Cell[A]],
        init: T,
        function: Callable[[T, A], T],
        *,
        equal: Callable[[T, T], bool] | None = None,
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[T], Sexp] | None = None,
    ) -> Fold[A, T]:
        """Return ``function(... function(init, parent_0) ..., parent_n)``: O(parents) a change."""
        return Fold(self, parents, init, function, _cutoff(equal, cutoff), name, serializer)

    def incr_fold(
        self,
        parents: Iterable[Cell[A]],
        init: T,
        add: Callable[[T, A], T],
        remove: Callable[[T, A], T],
        *,
        approximate: bool = False,
        equal: Callable[[T, T], bool] | None = None,
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[T], Sexp] | None = None,
    ) -> IncrFold[A, T]:
        """Return the fold of ``add``, kept by removing old values and adding new: O(changed).

        The order of parents must not matter, and ``remove`` must undo ``add`` exactly, or the
        total drifts: float sums do not, unless the values are few-bit; use an exact aggregate.
        ``approximate=True`` accepts the drift, and keeps the invariant check from reporting it.
        """
        cut = _cutoff(equal, cutoff)
        return IncrFold(self, parents, init, add, remove, approximate, cut, name, serializer)

    def bind(
        self,
        parent: Cell[A],
        function: Callable[[A], Cell[T]],
        *,
        equal: Callable[[T, T], bool] | None = None,
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[T], Sexp] | None = None,
    ) -> Cell[T]:
        """Return the value of the cell that ``function(parent)`` returns, for now.

        The function runs again when ``parent`` changes. It may return an existing cell or make
        new ones; those it made belong to the bind and are removed when it runs again, so only
        each other and the bind may depend on them.
        """
        return Bind(self, parent, function, _cutoff(equal, cutoff), name, serializer)


def _cutoff(equal: Callable[[T, T], bool] | None, cutoff: Cutoff | None) -> Cutoff | None:
    if equal is None:
        return cutoff
    if cutoff is not None:
        raise TypeError("give equal or cutoff, not both")
    return Cutoff.equal(equal)
