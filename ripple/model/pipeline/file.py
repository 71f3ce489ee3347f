"""The user's Python file, and the pipeline in it."""

from __future__ import annotations

import ast
import builtins
import linecache
import os
import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, cast

import ripple
from ripple.core.errors import InputError, PlanError, RippleError
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.nodes import SourceSpec
from ripple.model.pipeline.plan import Plan
from ripple.model.records.members import is_record_class

if TYPE_CHECKING:
    from types import CodeType, ModuleType

FILE_HELP = "a Python file; NAME: which pipeline in it, by default the only one, or 'pipeline'"
NAME_DEFAULT = "pipeline"
_UNKNOWN_ARGUMENT = "got an unexpected keyword argument"
_MEANT = ". Did you mean"
_OURS = os.path.dirname(ripple.__file__) + os.sep


class PipelineFileError(RippleError):
    """The user's file has raised; the text is a line for our errors, else its own traceback.

    marked: the line of the file, and below it marks of what has raised; "" in a traceback.
    """

    def __init__(self, text: str, marked: str = "") -> None:
        super().__init__(text)
        self.marked = marked


def load_plan(place: str) -> Plan:
    """Return the plan of the pipeline at ``FILE.py[:NAME]``.

    The file is imported as the module it would be for its neighbours, which it can import.
    Raises InputError when there is no such file or pipeline or it ends the program, and
    PipelineFileError when the file itself raises.
    """
    found = _load_pipeline(place)
    return found if isinstance(found, Plan) else found.plan()


def load_sources(place: str) -> tuple[SourceSpec, ...]:
    """Return the sources of the pipeline at ``FILE.py[:NAME]``, which may end without a sink.

    NAME may also be a record class, which is the one source then. Raises as ``load_plan`` does.
    """
    path, name = _split(place)
    module = _load(path)
    cls = vars(module).get(name) if name else None
    if name and is_record_class(cls):
        return Pipeline("records").source(name, cast("type", cls))._draft.sources
    classes = [key for key, value in vars(module).items() if is_record_class(value)]
    found = _choose(module, path, name, classes)
    return found.sources if isinstance(found, Plan) else found._draft.sources


def _load_pipeline(place: str) -> Pipeline | Plan:
    path, name = _split(place)
    return _choose(_load(path), path, name)


def _split(place: str) -> tuple[Path, str | None]:
    path, colon, name = place.rpartition(":")
    if colon and name.isidentifier() and not os.path.exists(place):
        return Path(path), name
    return Path(place), None


class _FromSource(SourceFileLoader):
    """Compiles the file as it is.

    Cached bytecode counts for as long as the file's size and second stay: a file changed and run
    again at once would run as it was. It would also lie in the user's folder.
    """

    def get_code(self, fullname: str) -> CodeType:
        """Return the module's code."""
        del fullname
        code: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return code


def _load(path: Path) -> ModuleType:
    if path.is_dir():
        raise InputError(f"cannot read {path}: it is a directory, not a Python file")
    try:
        path.open("rb").close()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    if path.suffix != ".py":
        raise InputError(f"{path} is not a Python file: its name does not end in .py")
    # Under its own name, so that functions in it are the same steps for every importer.
    name = path.stem if path.stem not in sys.modules else f"{path.stem} (user)"
    loader = _FromSource(name, str(path))
    spec = spec_from_loader(name, loader)
    assert spec is not None, "there is a loader"
    module = module_from_spec(spec)
    sys.modules[name] = module  # annotations of record classes are looked up there
    sys.path.insert(0, str(path.resolve().parent))  # as `python FILE` does
    with _unchanged():
        try:
            loader.exec_module(module)
        except Exception as error:  # any error of a user's file
            raise PipelineFileError(*_told(error)) from error
        except SystemExit as error:
            raise InputError(
                f"{path} ends the program while it is loaded (SystemExit, {error.code!r}): put "
                'what it does besides defining the pipeline below if __name__ == "__main__":'
            ) from None
    return module


@contextmanager
def _unchanged() -> Iterator[None]:
    """Restore the process's folder and streams, which a user's file may have changed.

    Places are said relative to the folder in which the program was started.
    """
    folder, streams = os.getcwd(), (sys.stdout, sys.stderr)
    try:
        yield
    finally:
        os.chdir(folder)
        sys.stdout, sys.stderr = streams


def _choose(
    module: ModuleType, path: Path, name: str | None, classes: Iterable[str] = ()
) -> Pipeline | Plan:
    """Return the pipeline. classes: names of record classes, where one may be named, too."""
    pipelines = {
        key: value for key, value in vars(module).items() if isinstance(value, (Pipeline, Plan))
    }
    if name is not None:
        if name not in pipelines:
            listed = ", ".join(pipelines) or "none"
            what = "is no pipeline" if hasattr(module, name) else "does not exist"
            others = ", ".join(classes)
            records = f"; the record classes: {others}" if others else ""
            raise InputError(f"{name!r} in {path} {what}; the pipelines there: {listed}{records}")
        return pipelines[name]
    if NAME_DEFAULT in pipelines:
        return pipelines[NAME_DEFAULT]
    if not pipelines:
        raise PlanError(f"there is no pipeline in {path}: write pipeline = rp.Pipeline(...)")
    # Prefixes of other pipelines do not count, unless there is nothing else.
    whole = {key: value for key, value in pipelines.items() if _is_whole(value)} or pipelines
    if len(set(map(id, whole.values()))) > 1:
        names = ", ".join(whole)
        raise PlanError(f"there are several pipelines in {path}: say {path}:NAME, one of {names}")
    return next(iter(whole.values()))


def _is_whole(pipeline: Pipeline | Plan) -> bool:
    try:
        return isinstance(pipeline, Plan) or bool(pipeline.plan())
    except PlanError:
        return False


def _told(error: Exception) -> tuple[str, str]:
    """Return an error of ours with its place in the file and that line, or another's traceback.

    So is a name that a call of the file does not take, of ours or not: a line says it all. The
    frames of ours and of the import system are left out.
    """
    report = traceback.TracebackException.from_exception(error)
    if isinstance(error, RippleError) or (
        isinstance(error, TypeError) and _UNKNOWN_ARGUMENT in str(error)
    ):
        frames = list(takewhile(lambda frame: not _is_ours(frame), _from_users(report.stack)))
        *callers, last = (f"{frame.filename}:{frame.lineno}" for frame in frames)
        called = f" (called at {', '.join(reversed(callers))})" if callers else ""
        return f"{last}: {error}{called}", _marked(frames[-1])
    part: traceback.TracebackException | None = report
    while part is not None:
        own = [frame for frame in _from_users(part.stack) if not _is_ours(frame)]
        part.stack = traceback.StackSummary.from_list(own)
        part = part.__cause__ or part.__context__
    text = "".join(report.format()).rstrip()
    return text if _MEANT in text else text + _meant(error), ""


def _meant(error: Exception) -> str:
    """Return a hint at the name that is meant, as Python says it where it ends by the error.

    Since Python 3.12 a traceback as text has it too.
    """
    if not isinstance(error, (AttributeError, NameError)) or not error.name:
        return ""
    if isinstance(error, AttributeError):
        known = dir(error.obj)
    else:
        *_, (frame, _) = traceback.walk_tb(error.__traceback__)
        known = [*frame.f_locals, *frame.f_globals, *dir(builtins)]
    has_way_out = str(error).rpartition(error.name)[2].startswith("': write ")
    near = [] if has_way_out else get_close_matches(error.name, known, n=1)
    return f"{_MEANT}: {near[0]!r}?" if near else ""


def _marked(frame: traceback.FrameSummary) -> str:
    """Return the line of a frame, and marks below the name of what was called there."""
    line = linecache.getline(frame.filename, frame.lineno or 0).rstrip().encode()
    start = frame.colno
    if not line or start is None:
        return ""
    end = frame.end_colno if frame.end_lineno == frame.lineno else None
    called = _called(line[start:end])
    start, end = start + called[0], start + called[1]
    indent = len(line) - len(line.lstrip())
    blank = " " * len(line[indent:start].decode())
    marks = "^" * max(1, len(line[start:end].decode()))
    return f"    {line[indent:].decode()}\n    {blank}{marks}"


def _called(text: bytes) -> tuple[int, int]:
    """Return where the name of what a call calls begins and ends; the whole of other code."""
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:  # it goes on in the next line
        name = re.match(rb"\w*", text)
        return 0, name.end() if name else 0
    if not isinstance(node, ast.Call):
        return 0, len(text)
    end = node.func.end_col_offset or 0
    return (end - len(node.func.attr.encode()) if isinstance(node.func, ast.Attribute) else 0), end


def _from_users(frames: Iterable[traceback.FrameSummary]) -> Iterator[traceback.FrameSummary]:
    """Yield the frames from the user's first one on."""
    return dropwhile(lambda frame: _is_ours(frame) or _is_import(frame), frames)


def _is_ours(frame: traceback.FrameSummary) -> bool:
    return frame.filename.startswith(_OURS)


def _is_import(frame: traceback.FrameSummary) -> bool:
    return frame.filename.startswith("<frozen importlib")
