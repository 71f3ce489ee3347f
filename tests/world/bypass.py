"""Finds code that goes round the world's ports, or whose result depends on more than its input."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# A module of which any use touches the outside: clocks, chance, processes, threads, sockets.
MODULES = frozenset(
    [
        "time",
        "random",
        "secrets",
        "socket",
        "ssl",
        "select",
        "selectors",
        "threading",
        "_thread",
        "multiprocessing",
        "subprocess",
        "signal",
        "tempfile",
        "shutil",
        "fcntl",
        "mmap",
        "glob",
        "socketserver",
        "sched",
    ]
) | {"concurrent.futures", "urllib.request", "http.client", "http.server"}

CALLS = frozenset(
    [
        "uuid.uuid1",  # the others name things: of chance and of this machine are these
        "uuid.uuid4",
        "uuid.uuid6",
        "uuid.uuid7",
        "uuid.uuid8",
        "uuid.getnode",
        "datetime.datetime.now",
        "datetime.datetime.utcnow",
        "datetime.datetime.today",
        "datetime.date.today",
        "open",
        "io.open",
        "io.FileIO",
        "pathlib.Path",
        "input",
        "hash",
        "asyncio.open_connection",
        "asyncio.start_server",
        "asyncio.open_unix_connection",
    ]
)

# Of os, these only name things.
OS_PURE = frozenset(
    [
        "os.PathLike",
        "os.fspath",
        "os.fsdecode",
        "os.fsencode",
        "os.sep",
        "os.path.join",
        "os.path.split",
        "os.path.basename",
        "os.path.dirname",
        "os.path.splitext",
    ]
)

# Whoever consumes a set through these does not learn its order.
ORDERLESS = frozenset(["sorted", "set", "frozenset", "any", "all", "len", "min", "max", "bool"])
ORDERED = frozenset(
    ["list", "tuple", "enumerate", "iter", "next", "zip", "map", "filter", "dict.fromkeys", "sum"]
)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SET_METHODS = frozenset(["union", "intersection", "difference", "symmetric_difference", "copy"])

_COMPILED = re.compile(
    r"^\s*(?:c?import|from)\s+(" + "|".join(sorted(MODULES)) + r"|libc\.time|posix[\w.]*)\b"
    r"|\b(fopen|hash|rand|getenv|clock_gettime)\(",
)


@dataclass(frozen=True, order=True)
class Bypass:
    """One place: ``what`` is a module, a function, ``set order`` or ``id order``."""

    line: int
    what: str


def bypasses(source: str, *, compiled: bool = False) -> list[Bypass]:
    """Return where ``source`` goes round the ports, in order."""
    if compiled:
        return _in_compiled(source)
    tree = ast.parse(source)
    finder = _Finder(tree)
    finder.visit(tree)
    return sorted(set(finder.found))


def _in_compiled(source: str) -> list[Bypass]:
    found = []
    for number, text in enumerate(source.splitlines(), 1):
        # Docstrings speak of hash() in backquotes.
        match = _COMPILED.search(text.partition("#")[0].replace("``hash()``", ""))
        if match:
            found.append(Bypass(number, match[1] or match[2]))
    return found


class _Finder(ast.NodeVisitor):
    def __init__(self, tree: ast.Module) -> None:
        self.found: list[Bypass] = []
        self._modules: dict[str, str] = {}  # local name -> what it was imported as
        self._attributes = _attributes_that_are_sets(tree)
        self._names = _names_that_are_sets(tree, frozenset())
        self._function = ""

    # Imports.

    def visit_If(self, node: ast.If) -> None:
        # What only the type checker imports does nothing.
        if ast.unparse(node.test) != "TYPE_CHECKING":
            self.generic_visit(node)
        else:
            for statement in node.orelse:
                self.visit(statement)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._imported(node, alias.name)
            self._modules[alias.asname or alias.name.partition(".")[0]] = (
                alias.name if alias.asname else alias.name.partition(".")[0]
            )

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if not self._imported(node, module):
            for alias in node.names:
                name = f"{module}.{alias.name}"
                self._modules[alias.asname or alias.name] = name
                self._imported(node, name)
                if module == "os" and name not in OS_PURE:
                    self._report(node, name)

    def _imported(self, node: ast.AST, name: str) -> bool:
        for module in MODULES:
            if name == module or name.startswith(f"{module}."):
                self._report(node, module)
                return True
        return False

    # Names and calls.

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        before = self._function, self._names
        self._function, self._names = node.name, _names_that_are_sets(node, self._names)
        for part in (*node.decorator_list, *node.args.defaults, *node.body):
            self.visit(part)
        self._function, self._names = before

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        before, self._names = self._names, _names_that_are_sets(node, self._names)
        self.generic_visit(node)
        self._names = before

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        name = self._name(node)
        if name.startswith("os.") and name not in OS_PURE and name != "os.path":
            self._report(node, name)
        else:
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        name = self._name(node.func)
        # A set or dict finds things again by hash; what it returns is nobody's result.
        if name in CALLS and not (name == "hash" and self._function == "__hash__"):
            self._report(node, name)
        orders = name in ORDERED or (
            isinstance(node.func, ast.Attribute) and node.func.attr in ("join", "extend")
        )
        if orders and any(self._is_set(argument) for argument in node.args):
            self._report(node, "set order")
        if isinstance(node.func, ast.Attribute) and node.func.attr == "pop" and not node.args:
            self._ordered(node.func.value)
        for keyword in node.keywords:
            if keyword.arg == "key" and any(
                isinstance(part, ast.Name) and part.id == "id" for part in ast.walk(keyword.value)
            ):
                self._report(node, "id order")
        if name in ORDERLESS and node.args and isinstance(node.args[0], ast.GeneratorExp):
            self._visit_orderless(node.args[0])
            node = ast.Call(func=node.func, args=node.args[1:], keywords=node.keywords)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        ordering = any(isinstance(o, (ast.Lt, ast.Gt, ast.LtE, ast.GtE)) for o in node.ops)
        if ordering and any(isinstance(s, ast.Call) and self._name(s.func) == "id" for s in sides):
            self._report(node, "id order")
        self.generic_visit(node)

    # Orders of sets.

    def visit_For(self, node: ast.For) -> None:
        self._ordered(node.iter)
        self.generic_visit(node)

    def visit_Starred(self, node: ast.Starred) -> None:
        self._ordered(node.value)
        self.generic_visit(node)

    def visit_Set(self, node: ast.Set) -> None:
        for element in node.elts:
            self.visit(element.value if isinstance(element, ast.Starred) else element)

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self._visit_orderless(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self._ordered(node.iter)
        self.generic_visit(node)

    def _visit_orderless(self, node: ast.SetComp | ast.GeneratorExp) -> None:
        self.visit(node.elt)
        for generator in node.generators:
            self.generic_visit(generator)

    def _ordered(self, node: ast.expr) -> None:
        if self._is_set(node):
            self._report(node, "set order")

    def _is_set(self, node: ast.expr) -> bool:
        if isinstance(node, (ast.Set, ast.SetComp)):
            return True
        if isinstance(node, ast.Name):
            return node.id in self._names
        if isinstance(node, ast.Attribute):
            return node.attr in self._attributes
        if isinstance(node, ast.BinOp) and isinstance(
            node.op, (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)
        ):
            sides = (node.left, node.right)
            return any(self._is_set(side) or _is_keys(side) for side in sides)
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                return node.func.id in ("set", "frozenset")
            return (
                isinstance(node.func, ast.Attribute)
                and node.func.attr in _SET_METHODS
                and self._is_set(node.func.value)
            )
        return False

    def _name(self, node: ast.expr) -> str:
        """Return the dotted name as imported, ``""`` for what is no name."""
        if isinstance(node, ast.Name):
            return self._modules.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            base = self._name(node.value)
            return f"{base}.{node.attr}" if base else ""
        return ""

    def _report(self, node: ast.AST, what: str) -> None:
        self.found.append(Bypass(getattr(node, "lineno", 0), what))


def _is_keys(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("keys", "items")
    )


def _attributes_that_are_sets(tree: ast.Module) -> frozenset[str]:
    """Return the attributes of a file's own classes that are sets."""
    names = set()
    for node in _statements(tree, nested=True):
        if isinstance(node, ast.ClassDef):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and _is_set_type(field.annotation):
                    names.add(ast.unparse(field.target))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
            if _is_set_type(node.annotation):
                names.add(node.target.attr)
        elif isinstance(node, ast.Assign) and _makes_set(node.value):
            names.update(t.attr for t in node.targets if isinstance(t, ast.Attribute))
    return frozenset(names)


def _names_that_are_sets(
    scope: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, outer: frozenset[str]
) -> frozenset[str]:
    """Return the names that are sets in a scope: by annotation or by a plain assignment."""
    names = set(outer)
    if not isinstance(scope, ast.Module):
        arguments = scope.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
        names -= {argument.arg for argument in every}
        names |= {a.arg for a in every if a.annotation and _is_set_type(a.annotation)}
    for node in _statements(scope, nested=False):
        if isinstance(node, ast.AnnAssign) and _is_set_type(node.annotation):
            names.add(ast.unparse(node.target))
        elif isinstance(node, ast.Assign) and _makes_set(node.value):
            names.update(t.id for t in node.targets if isinstance(t, ast.Name))
    return frozenset(names)


def _statements(scope: ast.AST, *, nested: bool) -> Iterator[ast.AST]:
    """Walk the statements of a scope. nested: also those of the functions and classes in it."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.expr) or (isinstance(node, _SCOPES) and not nested):
            continue
        yield node
        yield from _statements(node, nested=nested)


def _makes_set(node: ast.expr) -> bool:
    if isinstance(node, (ast.Set, ast.SetComp)):
        return True
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("set", "frozenset")
    )


def _is_set_type(node: ast.expr) -> bool:
    text = ast.unparse(node).strip("\"'")
    return text.startswith(("set[", "frozenset[", "Set[", "AbstractSet[")) or text in (
        "set",
        "frozenset",
    )
