"""The graph that users build: leaves, and cells computed from cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, overload

from ripple.core.arguments import need_bool, need_function
from ripple.core.errors import GraphError
from ripple.engine.graph import node
from ripple.engine.graph.arguments import cell_options, need_cell, need_cells, need_name
from ripple.engine.graph.bind import Bind
from ripple.engine.graph.cell import Cell, Fold, IncrFold, Leaf, Map, Map2, MapN
from ripple.engine.graph.cutoff import Cutoff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import UnionType

    from ripple.core.sexp import Sexp
    from ripple.model.expression.expr import Expr
    from ripple.model.schema.types import FieldType, Schema
    from ripple.notebook.keyed import KeyedColumn, LeafColumn
    from ripple.notebook.map_column import MapColumn

A = TypeVar("A")
B = TypeVar("B")
K = TypeVar("K")
T = TypeVar("T")

if TYPE_CHECKING:
    KeyPart: TypeAlias = "type | FieldType"
    AnyKey: TypeAlias = tuple[KeyPart, ...] | Mapping[str, KeyPart] | FieldType
    # float | None and its like are not a type for a type checker.
    RowSchema: TypeAlias = Mapping[str, Any] | Schema | FieldType | UnionType
    Several: TypeAlias = Sequence[KeyedColumn[Any, Any] | Cell[Any]]


class Graph(node.Graph):
    """An incremental graph: set leaves, :meth:`stabilize`, read values.

    ``now`` is the clock that times stabilizations, in nanoseconds; nodes never see it. All
    methods that make a cell take ``equal`` (old and new count as the same value: nothing above
    is recomputed) or a ``cutoff``, a ``name`` for messages, and a ``serializer`` (value to
    S-expression) for the cell's ``value_sexp``. They compute the first value at once and raise
    NodeError if the function fails; they raise GraphError for parents of another graph.

    Functions of cells get values and return a new one: they must be pure, and must not change their
    arguments. A graph belongs to one thread.
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
        """Return a cell; ``leaf.set(value)`` sets its value from outside."""
        options = cell_options("leaf", equal=equal, cutoff=cutoff, name=name, serializer=serializer)
        return Leaf(self, value, *options)

    @overload
    def column(self, schema: type[T], *, name: str | None = None) -> LeafColumn[str, T]: ...
    @overload
    def column(
        self, schema: type[T], key: type[K] | KeyedColumn[K, Any], *, name: str | None = None
    ) -> LeafColumn[K, T]: ...
    @overload
    def column(
        self, schema: type[T], key: AnyKey, *, name: str | None = None
    ) -> LeafColumn[Any, T]: ...
    @overload
    def column(self, schema: RowSchema, *, name: str | None = None) -> LeafColumn[str, Any]: ...
    @overload
    def column(
        self, schema: RowSchema, key: type[K] | KeyedColumn[K, Any], *, name: str | None = None
    ) -> LeafColumn[K, Any]: ...
    @overload
    def column(
        self, schema: RowSchema, key: AnyKey, *, name: str | None = None
    ) -> LeafColumn[Any, Any]: ...
    def column(self, schema: Any, key: Any = str, *, name: str | None = None) -> Any:
        """Return a column: a row per key, written from outside.

        schema: of a row. A type such as ``float``, ``str | None`` or a field type, for rows
        of one value (as a field it is called ``name``, or "value"); a mapping of field names to
        such types or a ``Schema``, for rows that are dicts; a record class, for its instances.
        key: str, int, bool, a tuple of them for keys that are tuples, a mapping that also names
        the parts; or another column, to have its keys: only columns of the same keys can be
        mapped together. Raises SchemaError for other types.

        Values that a type does not take as they are (``ripple.model.schema.values``) are a
        SchemaError. As with cells, writes show at the next stabilize. A row written again, equal to
        the bit, is not a change.
        """
        need_name("column", name)
        from ripple.notebook.columns import make_column  # noqa: PLC0415  # needs numpy and pyarrow

        return make_column(self, schema, key, name)

    @overload
    def map(
        self,
        parent: Cell[A],
        function: Callable[[A], T],
        *,
        equal: Callable[[T, T], bool] | None = None,
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Callable[[T], Sexp] | None = None,
    ) -> Cell[T]: ...
    @overload
    def map(
        self, parent: KeyedColumn[K, Any] | Several, function: Expr, *, name: str | None = None
    ) -> MapColumn[K, Any]: ...
    @overload
    def map(
        self,
        parent: KeyedColumn[K, Any] | Several,
        function: Callable[[dict[str, Any]], object],
        *,
        batch: Literal[True],
        schema: type[T] | RowSchema = ...,
        name: str | None = None,
    ) -> MapColumn[K, Any]: ...
    @overload
    def map(
        self,
        parent: KeyedColumn[K, A],
        function: Callable[[A], T],
        *,
        schema: type[T] | RowSchema = ...,
        name: str | None = None,
    ) -> MapColumn[K, T]: ...
    @overload
    def map(
        self,
        parent: Several,
        function: Callable[..., T],
        *,
        schema: type[T] | RowSchema = ...,
        name: str | None = None,
    ) -> MapColumn[Any, T]: ...
    def map(
        self,
        parent: Any,
        function: Any,
        *,
        equal: Any = None,
        cutoff: Cutoff | None = None,
        name: str | None = None,
        serializer: Any = None,
        batch: bool = False,
        schema: Any = None,
    ) -> Any:
        """Return ``function(parent)``: a cell of a cell, a column of a column.

        With a column, or several of the same keys and cells, the function is computed for the
        slots that changed, where all columns have a row; when a cell changes, for all. It is one
        of three, in order of speed:

        - a column expression over the fields of the columns and the names of the cells;
        - with ``batch``, a NumPy function of a dict by the same names: an array per field, which
          can only be read, as it is for each cell; it returns an array, or for rows of several
          fields a dict of arrays;
        - a function of the rows and the cells' values, in the order of the parents.

        schema: of the rows of the last two, as in :meth:`column`; by default ``float``. A column's
        rows have no cutoff but equality to the bit. A row that an expression cannot compute (an
        integer overflow, a division by zero) raises NodeError as functions do.
        """
        options = cell_options("map", equal=equal, cutoff=cutoff, name=name, serializer=serializer)
        if isinstance(parent, Cell):
            need_function("map: function", function, GraphError)
            if batch is not False or schema is not None:
                raise GraphError("map: a cell has no batch and no schema; columns have")
            return Map(self, parent, function, *options)
        if not (equal is cutoff is serializer is None):
            raise GraphError("map: a column has no equal, cutoff or serializer")
        from ripple.notebook.columns import map_columns  # noqa: PLC0415  # needs numpy and pyarrow

        need_bool("map: batch", batch, GraphError)
        return map_columns(self, parent, function, batch=batch, schema=schema, name=name)

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
        need_cell("map2", "first", first)
        need_cell("map2", "second", second)
        need_function("map2: function", function, GraphError)
        options = cell_options("map2", equal=equal, cutoff=cutoff, name=name, serializer=serializer)
        return Map2(self, first, second, function, *options)

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
        cells = need_cells("map_n", "parents", parents)
        need_function("map_n: function", function, GraphError)
        options = cell_options(
            "map_n", equal=equal, cutoff=cutoff, name=name, serializer=serializer
        )
        return MapN(self, cells, function, *options)

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
        cells = need_cells("fold", "parents", parents)
        need_function("fold: function", function, GraphError)
        options = cell_options("fold", equal=equal, cutoff=cutoff, name=name, serializer=serializer)
        return Fold(self, cells, init, function, *options)

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
        cells = need_cells("incr_fold", "parents", parents)
        need_function("incr_fold: add", add, GraphError)
        need_function("incr_fold: remove", remove, GraphError)
        need_bool("incr_fold: approximate", approximate, GraphError)
        options = cell_options(
            "incr_fold", equal=equal, cutoff=cutoff, name=name, serializer=serializer
        )
        return IncrFold(self, cells, init, add, remove, approximate, *options)

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
        each other and the bind may depend on them. They have no value yet while it runs: each is
        computed in its turn. Binds may be nested ``ripple.engine.graph.bind.BIND_DEPTH_MAX`` deep.
        """
        need_cell("bind", "parent", parent)
        need_function("bind: function", function, GraphError)
        options = cell_options("bind", equal=equal, cutoff=cutoff, name=name, serializer=serializer)
        return Bind(self, parent, function, *options)
