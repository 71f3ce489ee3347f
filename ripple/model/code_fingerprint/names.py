"""Functions, and the values of the names in their code."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from types import CellType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, cast

from ripple.core.frozen import frozen
from ripple.core.sexp import Sexp
from ripple.model.code_fingerprint.attributes import attributes, is_plain
from ripple.model.code_fingerprint.bytecode import Chain, Reads, reads
from ripple.model.code_fingerprint.owner import (
    find,
    is_python,
    library_of_globals,
    library_of_module,
)
from ripple.model.code_fingerprint.place import within

if TYPE_CHECKING:
    from ripple.model.code_fingerprint.form import Reading

# Of Python's own functions, those through which code reaches values without a name in it.
_REACHES = {
    "__import__": "modules by names that are computed",
    "environ": "variables of the environment",
    "eval": "code that is made while it runs",
    "exec": "code that is made while it runs",
    "getattr": "attributes by names that are computed",
    "getenv": "variables of the environment",
    "globals": "globals by names that are computed",
    "getcontext": "the context of decimals",
    "import_module": "modules by names that are computed",
    "localcontext": "the context of decimals",
    "modules": "modules by names that are computed",
    "open": "files",
    "vars": "attributes by names that are computed",
}
# Of other libraries', those that read files: by their names, or by how these begin.
_READERS = ("numpy", "pandas", "polars", "pyarrow", "scipy", "duckdb", "joblib", "torch")
_READING = {
    *("load", "loadtxt", "genfromtxt", "fromfile", "memmap", "open_memmap", "loadmat"),
    *("memory_map", "input_stream", "OSFile", "ParquetFile", "open_file", "dataset"),
}
# Methods and attributes by which code reaches values without a name in it, of any object.
_REACHING = {
    "read_text": "files",
    "read_bytes": "files",
    "__globals__": "globals by names that are computed",
    "__closure__": "what a function closes over, as a whole",
}
# Where a module was loaded from and as what: other names and folders are no change of the code.
_ABOUT_MODULE = frozenset(
    f"__{name}__"
    for name in ("builtins", "cached", "doc", "file", "loader", "name", "package", "path", "spec")
)
_LATE = "imported when it runs: its code is seen, its values are not"
_ABSENT = "it is not there when the plan is made"


DECIMALS = "their context is not the one that Python begins with: other threads have their own"
_DECIMALS_BEGIN = (
    "Context(prec=28, rounding=ROUND_HALF_EVEN, Emin=-999999, Emax=999999, capitals=1, clamp=0, "
    "traps=[InvalidOperation, DivisionByZero, Overflow])"
)


def decimal_context() -> list[str]:
    """Return the decimal context here, none where it is Python's default."""
    context = sys.modules["decimal"].getcontext().copy()
    context.clear_flags()
    text = repr(context).replace("flags=[], ", "")
    return [] if text == _DECIMALS_BEGIN else [text]


@frozen
class Imported:
    """A module of the user's that a function imports when it runs."""

    name: str
    package: str
    code: CodeType


def function(reading: Reading, value: FunctionType, place: str) -> Sexp:
    """Return the form of a function where it is used."""
    package = reading.library(library_of_globals(value.__globals__))
    if package is None or value.__closure__ or "__wrapped__" in vars(value):
        name = value.__qualname__.rpartition("<locals>.")[2]
        return reading.number(value, name if place and name != "<lambda>" else place)
    return library(reading, package, value.__qualname__)


def library(reading: Reading, package: str, name: str) -> Sexp:
    """Return the form of a library's ``name``."""
    why = _reached(package, name)
    if why:
        reading.blind(name, why)
    return ["library", package, name]


def _reached(package: str, name: str) -> str:
    """Return the inputs of a library's function that no digest covers, "" for none."""
    last = name.rpartition(".")[2]
    if package in _READERS and (last in _READING or last.startswith(("read_", "scan_"))):
        return "files"
    return _REACHES.get(name, "") if is_python(package) else ""


def module(reading: Reading, value: ModuleType, place: str) -> Sexp:
    """Return the form of a module that is used as a value."""
    package = reading.library(library_of_globals(vars(value)))
    if package is None:
        return ["module", reading.blind(place, "a module as a whole")]
    return ["library", package, value.__name__]


def function_parts(reading: Reading, value: FunctionType, place: str) -> Iterator[tuple[str, Sexp]]:
    """Yield a function's operations, contents and values read."""
    package = reading.library(library_of_globals(value.__globals__))
    if package is not None:
        yield from _made_by_library(reading, package, value, place)
        return
    code = value.__code__
    form = reading.code(code, place)
    yield place, form
    if isinstance(form, str):  # over the limit
        return
    for name, default in _defaults(value):
        yield within(place, name), [name, reading.form(default, within(place, name))]
    found = reads(code)
    for name, why in _REACHING.items():
        if name in found.attributes:
            reading.blind(name, why)
    yield from _cells(reading, value, found, place)
    yield from _globals(reading, value, found)
    package = value.__globals__.get("__package__") or ""
    yield from _imports(reading, found, package, is_first=True)
    cells = [cell for cell in value.__closure__ or () if cell != CellType()]
    for name, held in sorted(vars(value).items()):
        # What a decorator keeps is in its closure, too; else it is read by that name alone.
        if name != "__wrapped__" or all(cell.cell_contents is not held for cell in cells):
            yield within(place, name), [name, reading.form(held, within(place, name))]


def imported(reading: Reading, value: Imported, place: str) -> Iterator[tuple[str, Sexp]]:
    """Yield a module's operations at import, and its imports."""
    form = reading.code(value.code, place)
    yield place, form
    if not isinstance(form, str):
        yield from _imports(reading, reads(value.code), value.package)


def _made_by_library(
    reading: Reading, package: str, value: FunctionType, place: str
) -> Iterator[tuple[str, Sexp]]:
    """Yield the references of a library's function: the wrapped one, and its arguments."""
    yield place, ["library", package, value.__qualname__]
    registry = vars(value).get("registry")
    if registry is not None:  # functools.singledispatch, which also holds a cache
        yield place, reading.form(registry, place)
        return
    yield from _cells(reading, value, Reads(), place)
    if "__wrapped__" in vars(value):
        yield place, reading.form(vars(value)["__wrapped__"], place)


def _defaults(value: FunctionType) -> Iterator[tuple[str, Any]]:
    defaults, code = value.__defaults__ or (), value.__code__
    names = code.co_varnames[: code.co_argcount]
    yield from zip(names[len(names) - len(defaults) :], defaults, strict=True)
    yield from sorted((value.__kwdefaults__ or {}).items())


def _cells(
    reading: Reading, value: FunctionType, found: Reads, place: str
) -> Iterator[tuple[str, Sexp]]:
    for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
        try:
            held = cell.cell_contents
        except ValueError:  # a name that is assigned later
            reading.blind(within(place, name), _ABSENT)
            yield within(place, name), [name, "absent"]
            continue
        yield from _named(reading, within(place, name), held, found.free.get(name, {()}))


def _globals(reading: Reading, value: FunctionType, found: Reads) -> Iterator[tuple[str, Sexp]]:
    known = value.__globals__
    builtin = cast("Any", value).__builtins__  # which typeshed knows in some versions only
    if "__file__" in found.globals:
        reading.blind("__file__", "where the code lies")
    for name in sorted(found.globals.keys() - _ABOUT_MODULE):
        if name in known:
            yield from _named(reading, name, known[name], found.globals[name])
        elif name in builtin:
            if name in _REACHES:
                reading.blind(name, _REACHES[name])
        elif name in found.certain:
            reading.blind(name, _ABSENT)
            yield name, [name, "absent"]


def _named(
    reading: Reading, place: str, value: Any, chains: set[Chain]
) -> Iterator[tuple[str, Sexp]]:
    """Yield a name's value, or only the attributes read of a module or object."""
    if value is sys.modules:
        yield place, [place, reading.blind(place, _REACHES["modules"])]
        return
    if issubclass(type(value), ModuleType):  # isinstance would ask the value
        for chain in sorted(chains):
            yield _attribute(reading, value, chain, place)
        return
    names = {chain[0] for chain in chains if chain}
    is_whole = () in chains or not reading.is_own(value)
    if is_whole or not all(is_plain(value, name) for name in names):
        yield place, [place, reading.form(value, place)]
        return
    for name in sorted(names):
        rest = {chain[1:] for chain in chains if chain[0] == name}
        yield from _named(reading, within(place, name), attributes(value)[name], rest)


def _attribute(reading: Reading, module: ModuleType, chain: Chain, place: str) -> tuple[str, Sexp]:
    value: Any = module
    rest = list(chain)
    while rest and issubclass(type(value), ModuleType):
        package = reading.library(library_of_globals(vars(value)))
        if package is not None:
            for name in rest:
                why = _REACHES.get(name) or _reached(package, name)
                if why:
                    reading.blind(within(place, name), why)
            break
        name = rest.pop(0)
        place = within(place, name)
        if name not in vars(value):
            reading.blind(place, _ABSENT)
            return place, [place, "absent"]
        value = vars(value)[name]
    return place, [place, reading.form(value, place)]


def _imports(
    reading: Reading, found: Reads, package: str, *, is_first: bool = False
) -> Iterator[tuple[str, Sexp]]:
    """Yield the modules that are imported when a code runs: by their code, not by their values."""
    for level, names, name in sorted(found.imports):
        try:
            whole = importlib.util.resolve_name("." * level + name, package) if level else name
        except ImportError:
            whole = name
        if reading.library(library_of_module(whole)) is not None:
            continue
        parts = whole.split(".")
        above = [".".join(parts[:count]) for count in range(1, len(parts))]
        for one in (*above, whole, *(f"{whole}.{each}" for each in names)):
            code = _code_of(one)
            if code is not None:
                spec = find(one)
                home = one if spec and spec.submodule_search_locations else one.rpartition(".")[0]
                held = Imported(one, home, code)
                if is_first:
                    reading.blind(one, _LATE)
                yield one, [name, reading.number(held, one, key=("module", one))]
            elif one == whole:
                why = "compiled code" if find(one) else "there is no such module"
                yield one, [name, reading.blind(one, why)]


def _code_of(module: str) -> CodeType | None:
    try:
        spec = find(module)
        loader: Any = spec.loader if spec is not None else None
        code = loader.get_code(module) if hasattr(loader, "get_code") else None
    except (ImportError, OSError, SyntaxError, ValueError):
        return None
    return code if isinstance(code, CodeType) else None
