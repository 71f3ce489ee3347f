"""Construction of columns: key spaces, and evaluators of a map's rows from its parents'."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from ripple.core.arguments import need_function, shown
from ripple.core.errors import GraphError, SchemaError
from ripple.engine.graph.cell import Cell
from ripple.model.expression.bound import Values
from ripple.model.expression.expr import Expr
from ripple.model.expression.typed import Kind, kind_of
from ripple.model.keys.space import paired_space
from ripple.model.schema.columns import called, objects
from ripple.model.schema.types import KEY_TYPES, TEXTS, Bool, Field, FieldType, Float, Int64, String
from ripple.model.schema.values import value_of
from ripple.notebook.directory import Directory
from ripple.notebook.keyed import KeyedColumn, LeafColumn
from ripple.notebook.map_column import MapColumn
from ripple.notebook.rows import KINDS, Array, Gathered, RowType, fields_of, row_type, type_of

if TYPE_CHECKING:
    from ripple.engine.graph.node import Graph, Node
    from ripple.notebook.rows import SchemaLike

# (per parent column its gathered fields, values of the cells, rows) to (values, valid per field).
Evaluate: TypeAlias = (
    "Callable[[list[list[Gathered]], list[Any], int], tuple[list[Array], list[Any]]]"
)

_CELL_TYPES: dict[type, FieldType] = {float: Float(), int: Int64(), bool: Bool(), str: String()}


def make_column(
    graph: Graph, schema: SchemaLike, key: Any, name: str | None
) -> LeafColumn[Any, Any]:
    """Return a column written from outside; see :meth:`ripple.notebook.graph.Graph.column`."""
    rows = row_type(schema, name)
    try:
        space = key.directory.space if isinstance(key, KeyedColumn) else paired_space(_key(key))
    except SchemaError as error:
        raise SchemaError(f"key: {error}") from error
    directory = key.directory if isinstance(key, KeyedColumn) else Directory(space)
    shared = {field.name for field in directory.space.fields} & set(rows.names)
    if shared:
        raise SchemaError(f"{sorted(shared)[0]!r} is a field of the key and of the row; rename one")
    if isinstance(key, KeyedColumn) and key.graph is not graph:
        raise GraphError(f"{key!r} is not in this graph, so its keys cannot be shared")
    return LeafColumn(graph, directory, rows, name)


def _key(key: Any) -> tuple[Field, ...]:
    """Return the fields of a key: of one type, of a tuple of types, or of types by name."""
    if isinstance(key, Mapping):
        fields = fields_of(key)
    elif isinstance(key, tuple):
        fields = fields_of({f"key_{i}": part for i, part in enumerate(key)})
    else:
        fields = fields_of({"key": key})
    for field in fields:
        if field.optional or not isinstance(field.type, KEY_TYPES):
            raise SchemaError(f"a key is made of str, int and bool, not {type_of(field)}")
    return fields


def map_columns(
    graph: Graph,
    parents: Any,
    function: Any,
    *,
    batch: bool,
    schema: SchemaLike,
    name: str | None,
) -> MapColumn[Any, Any]:
    """Return a column computed from columns and cells; see :meth:`Graph.map`."""
    single = isinstance(parents, (KeyedColumn, Cell))
    listed: list[Node] = [parents] if single or not isinstance(parents, Iterable) else list(parents)
    for parent in listed:
        if not isinstance(parent, (KeyedColumn, Cell)):
            raise GraphError(f"map: parent must be a column or a cell, not {shown(parent)}")
    columns = [parent for parent in listed if isinstance(parent, KeyedColumn)]
    if not columns:
        raise GraphError("map: there must be a column among the parents; for cells, use map_n")
    for column in columns:
        if column.directory is not columns[0].directory:
            raise GraphError(
                f"{column!r} and {columns[0]!r} have different keys: make one of them with "
                "key= the other"
            )
    if isinstance(function, Expr):
        if schema is not None or batch:
            raise GraphError("map: an expression has its own type and is computed in batches")
        return _map_expression(graph, listed, function, name)
    need_function("map: function", function, GraphError)
    rows = row_type(float if schema is None else schema, name)
    evaluate = _batch(listed, rows, function) if batch else _each(listed, rows, function)
    return MapColumn(graph, listed, rows, evaluate, name)


class _Inputs:
    """The names that parents' fields and cells have for expressions and batch functions."""

    def __init__(self, parents: Sequence[Node]) -> None:
        self.columns = [parent for parent in parents if isinstance(parent, KeyedColumn)]
        self.cells = [parent for parent in parents if isinstance(parent, Cell)]
        # name -> (column or -1, field or cell, type)
        self.places: dict[str, tuple[int, int, FieldType]] = {}
        for c, column in enumerate(self.columns):
            for f, (name, of) in enumerate(column.row_type.types.items()):
                self._add(name, c, f, of)
        for c, cell in enumerate(self.cells):
            if cell.name is None:
                raise GraphError(f"{cell!r} needs a name, by which the function can refer to it")
            of = _CELL_TYPES.get(type(cell.value), Int64())
            self._add(cell.name, -1, c, of)

    def _add(self, name: str, column: int, place: int, of: FieldType) -> None:
        if name in self.places:
            raise GraphError(f"two parents have a field or name {name!r}; rename one")
        self.places[name] = column, place, of

    @property
    def types(self) -> dict[str, FieldType]:
        return {name: of for name, (_, _, of) in self.places.items()}


def _map_expression(
    graph: Graph, parents: Sequence[Node], expr: Expr, name: str | None
) -> MapColumn[Any, Any]:
    inputs = _Inputs(parents)
    for cell in inputs.cells:
        if type(cell.value) not in _CELL_TYPES:
            raise GraphError(
                f"map: {cell!r} holds {shown(cell.value)}, of which there are no expressions"
            )
    bound = expr.bind(inputs.types)
    rows = row_type(bound.type, name)

    def evaluate(
        gathered: list[list[Gathered]], cells: list[Any], count: int
    ) -> tuple[list[Array], list[Any]]:
        columns = {}
        for used in bound.columns:
            column, place, of = inputs.places[used]
            if column < 0:
                columns[used] = _repeated(inputs.cells[place], cells[place], of, count)
            else:
                columns[used] = _values(*gathered[column][place], of)
        found = bound.evaluate(columns, count)
        for reason in found.failed.values():
            raise ArithmeticError(reason)
        values = found.values.to_pylist() if isinstance(found.values, pa.Array) else found.values
        return [values], [found.valid]

    machine = bound.machine_columns
    if machine is None:
        return MapColumn(graph, list(parents), rows, evaluate, name)
    kinds = [KINDS[kind_of(inputs.places[used][2])[0]] for used in machine]
    places = [inputs.places[used][:2] for used in machine]
    masked = any(kind_of(inputs.places[used][2])[1] for used in machine)
    return MapColumn(
        graph,
        list(parents),
        rows,
        evaluate,
        name,
        bound.program,
        tuple((kind, *place) for kind, place in zip(kinds, places, strict=True)),
        masked,
        expr,
    )


def _batch(parents: Sequence[Node], rows: RowType, function: Callable[..., Any]) -> Evaluate:
    """Return an evaluator that calls a user's function with arrays by name, and cells' values."""
    inputs = _Inputs(parents)

    def evaluate(
        gathered: list[list[Gathered]], cells: list[Any], count: int
    ) -> tuple[list[Array], list[Any]]:
        given = {
            name: cells[place] if column < 0 else _numpy(*gathered[column][place])
            for name, (column, place, _) in inputs.places.items()
        }
        return rows.arrays(called(function, given), count)

    return evaluate


def _each(parents: Sequence[Node], rows: RowType, function: Callable[..., Any]) -> Evaluate:
    """Return an evaluator that calls a user's function with the parents' rows and values."""
    row_types = [parent.row_type for parent in parents if isinstance(parent, KeyedColumn)]
    is_column = [isinstance(parent, KeyedColumn) for parent in parents]

    def evaluate(
        gathered: list[list[Gathered]], cells: list[Any], count: int
    ) -> tuple[list[Array], list[Any]]:
        columns = iter([_rows(of, fields) for of, fields in zip(row_types, gathered, strict=True)])
        values = iter(cells)
        arguments = [next(columns) if one else [next(values)] * count for one in is_column]
        made = [rows.values_of(function(*row)) for row in zip(*arguments, strict=True)]
        listed = zip(*made, strict=True)
        return rows.arrays(dict(zip(rows.names, map(list, listed), strict=True)), count)

    return evaluate


def _rows(of: RowType, fields: list[Gathered]) -> list[Any]:
    lists = [_listed(values, valid) for values, valid in fields]
    if of.is_single:
        return lists[0]
    return [of.make(**dict(zip(of.names, row, strict=True))) for row in zip(*lists, strict=True)]


def _listed(values: Array, valid: Any) -> list[Any]:
    listed = values if isinstance(values, list) else values.tolist()
    if valid is None or isinstance(values, list):
        return listed
    return [value if ok else None for value, ok in zip(listed, valid.tolist(), strict=True)]


def _numpy(values: Array, valid: Any) -> Any:
    """Return a column as a batch function gets it: numbers, or objects for texts and nulls."""
    if isinstance(values, list) or (valid is not None and not valid.all()):
        return objects(_listed(values, valid))
    return values


def _values(values: Array, valid: Any, of: FieldType) -> Values:
    mask = None if valid is None else valid.view(np.bool_)
    if kind_of(of)[0] is Kind.TEXT:
        return Values(pa.array(values, pa.string()), mask)
    return Values(values, mask)


def _repeated(cell: Cell[Any], value: Any, of: FieldType, count: int) -> Any:
    value = value_of(value, of, f"the value of {cell!r}")
    if isinstance(of, TEXTS):
        return pa.array([value] * count, pa.string())
    return np.full(count, value)
