"""The form of code differs after every edit of its meaning, and no edit of its lines."""

from __future__ import annotations

import ast
import copy
import importlib.util
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from ripple.model.code_fingerprint.bytecode import operations, reads

# Of how many edits one is tried; none where there is dead code, in which no edit can be seen.
MODULES = {"bisect": 1, "fractions": 4, "heapq": 3, "shlex": 16, "statistics": 16, "textwrap": 0}
TREES = {
    name: ast.parse(Path(str(spec.origin)).read_text())
    for name in MODULES
    if (spec := importlib.util.find_spec(name))
}


def compiled(tree: ast.AST) -> CodeType:
    return compile(ast.fix_missing_locations(tree), "any.py", "exec")  # type: ignore[arg-type]


def meaning(code: CodeType) -> list[Any]:
    return [
        (
            one.name,
            meaning(one.argument) if isinstance(one.argument, CodeType) else repr(one.argument),
            one.then,
            one.handler,
        )
        for one in operations(code)
    ]


def functions(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant


def on_one_line(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            node.lineno = node.end_lineno = 1
            node.col_offset = node.end_col_offset = 0  # type: ignore[attr-defined]
    return tree


def without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node):
            node.body[0:1] = [] if len(node.body) > 1 else [ast.Pass()]
    return tree


LAYOUTS: dict[str, Callable[[ast.Module], ast.Module]] = {
    "printed again": lambda tree: ast.parse(ast.unparse(tree)),
    "on one line": on_one_line,
    "without docstrings": without_docstrings,
    "further down": lambda tree: ast.increment_lineno(tree, 1000),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", MODULES)
def test_lines_and_docstrings_are_no_part_of_what_code_does(name: str, layout: str) -> None:
    before = compiled(TREES[name])
    after = compiled(LAYOUTS[layout](copy.deepcopy(TREES[name])))
    pairs = list(zip(functions(before), functions(after), strict=True))
    assert pairs
    for one, other in pairs:
        assert one.co_qualname == other.co_qualname
        assert meaning(one) == meaning(other), one.co_qualname


# --- every edit of the meaning ---

_OTHERS: dict[type, Callable[[], Any]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Div,
    ast.Mod: ast.Add, ast.And: ast.Or, ast.Or: ast.And, ast.Lt: ast.LtE, ast.LtE: ast.Lt,
    ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot,
    ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.USub: ast.UAdd,
}  # fmt: skip


def edits(tree: ast.AST, step: int) -> Iterator[tuple[str, ast.AST]]:
    """Yield a copy of the function per edit of its body that can be made."""
    nodes = enumerate(ast.walk(tree))
    places = [(at, node, what) for at, node in nodes for what in _edited(node)]
    for at, node, what in places[len(places) % step :: step]:
        changed = copy.deepcopy(tree)
        twin = next(islice(ast.walk(changed), at, None))
        what(twin)
        yield f"{what.__name__} of {ast.dump(node)[:80]}", changed


def _edited(node: ast.AST) -> Iterator[Callable[[Any], None]]:  # noqa: C901 - a table, as code
    def constant(twin: Any) -> None:
        value = twin.value
        kind = type(value)
        twin.value = f"{value}x" if kind is str else not value if kind is bool else 2 * (not value)

    def attribute(twin: Any) -> None:
        twin.attr += "x"

    def keyword(twin: Any) -> None:
        twin.arg += "x"

    def operator(twin: Any) -> None:
        twin.op = _OTHERS[type(twin.op)]()

    def comparison(twin: Any) -> None:
        twin.ops[0] = _OTHERS[type(twin.ops[0])]()

    def negation(twin: Any) -> None:
        twin.test = ast.UnaryOp(ast.Not(), twin.test)

    def branches(twin: Any) -> None:
        twin.body, twin.orelse = twin.orelse, twin.body

    def caught(twin: Any) -> None:
        twin.type = ast.Name("SomethingElse", ast.Load())

    def returned(twin: Any) -> None:
        twin.value = ast.Constant("nothing of the kind")

    def omission(twin: Any) -> None:
        twin.body[-1:] = [ast.parse("otherwise()").body[0]]

    def addition(twin: Any) -> None:
        twin.body[0:0] = ast.parse("before()").body

    match node:
        case ast.Constant() if node.value is not None and node.value is not ...:
            yield constant
        case ast.Attribute():
            yield attribute
        case ast.keyword(arg=str()):
            yield keyword
        case ast.BinOp() | ast.BoolOp() | ast.UnaryOp() if type(node.op) in _OTHERS:
            yield operator
        case ast.Compare():
            yield comparison
        case ast.If():
            yield from (negation, omission, addition)
            if node.orelse:
                yield branches
        case ast.While() | ast.For() | ast.With():
            yield from (omission, addition)
        case ast.IfExp():
            yield from (negation, branches)
        case ast.ExceptHandler():
            yield caught
        case ast.Try():
            yield from (omission, addition)
        case ast.Return():
            yield returned


def _body(function: ast.FunctionDef) -> ast.FunctionDef:
    """Return the function without what is not in its code."""
    plain = copy.deepcopy(function)
    for node in [*ast.walk(plain)]:
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef):
            node.returns, node.decorator_list = None, []
            if ast.get_docstring(node):
                node.body[0:1] = [ast.Pass()]
    plain.args.defaults = []
    plain.args.kw_defaults = [None for _ in plain.args.kwonlyargs]
    return plain


def _functions(tree: ast.Module) -> list[ast.FunctionDef]:
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    return [node for body in bodies for node in body if isinstance(node, ast.FunctionDef)]


@pytest.mark.parametrize("name", [name for name, step in MODULES.items() if step])
def test_every_edit_of_what_code_does_is_seen(name: str) -> None:
    count = 0
    for function in _functions(TREES[name]):
        (before,) = functions(compiled(ast.Module([function], [])))
        known = meaning(before)
        for what, changed in edits(_body(function), MODULES[name]):
            (after,) = functions(compiled(ast.Module([changed], [])))  # type: ignore[list-item]
            assert meaning(after) != known, f"{function.name}: {what}"
            count += 1
    assert count > 20


def test_reads_are_those_of_everything_inside() -> None:
    def step(row, c):
        class Inner:
            limit = LIMIT  # noqa: F821

        def inner():
            from os.path import join as put

            return put, c.deep.er

        return [RATES.get(k) for k in row], lambda: shop.taxes.vat, Inner, inner  # noqa: F821

    found = reads(step.__code__)
    assert found.globals["RATES"] == {("get",)}
    assert found.globals["shop"] == {("taxes", "vat")}
    assert "LIMIT" in found.globals
    assert "LIMIT" not in found.certain
    assert "RATES" in found.certain
    assert found.free == {"c": {("deep", "er")}}
    assert found.imports == {(0, ("join",), "os.path")}
