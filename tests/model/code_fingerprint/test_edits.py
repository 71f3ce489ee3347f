"""Each edit of a step's code and values is seen, and no other edit."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ripple.model.code_fingerprint.form import CodeForm, code_form
from tests.model.code_fingerprint.modules import FILES, imported, written

# What changes: the file, the old text, the new one, and the place that is named.
EDITS = {
    "constant": ("steps.py", "LIMIT = 100", "LIMIT = 101", "LIMIT"),
    "type of a constant": ("steps.py", "LIMIT = 100", "LIMIT = 100.0", "LIMIT"),
    "entry of a dict": ("steps.py", '"a": 1.0', '"a": 1.5', "TABLE"),
    "order of a dict": (
        *("steps.py", '"a": 1.0, "b": [2.0, (3.0, None)]', '"b": [2.0, (3.0, None)], "a": 1.0'),
        "TABLE",
    ),
    "item of a nested list": ("steps.py", "[2.0, (3.0", "[2.5, (3.0", "TABLE['b']"),
    "item of a nested tuple": ("steps.py", "(3.0, None)", "(3.0, 0)", "TABLE['b']"),
    "element of a set": ("steps.py", '"Y", "Z"}', '"Y", "W"}', "VENUES"),
    "member of a set of members": ("steps.py", "TAKEN = {Side.BUY, ", "TAKEN = {", "TAKEN"),
    "element of an array": ("steps.py", "np.array([1.0, 2.0", "np.array([1.0, 2.5", "WEIGHTS"),
    "type of an array": ("steps.py", "2.0, 3.0])", "2.0, 3.0], np.float32)", "WEIGHTS"),
    "value of an Arrow table": ("steps.py", "[5, 6]", "[5, 7]", "ARROW"),
    "nanosecond in an Arrow table": ("steps.py", "pa.array([1,", "pa.array([2,", "ARROW"),
    "decimal": ("steps.py", 'Decimal("0.1")', 'Decimal("0.10")', "FEE"),
    "timedelta": ("steps.py", "seconds=1", "seconds=2", "PAUSE"),
    "deque": ("steps.py", "deque([1, 2])", "deque([1, 3])", "RECENT"),
    "namespace": ("steps.py", "at=9", "at=10", "OPEN"),
    "field of a named tuple": ("steps.py", "Point(0, 1)", "Point(0, 2)", "ORIGIN"),
    "member of an enumeration": ("steps.py", "BUY = 1", "BUY = 2", "Side.BUY"),
    "property of an enumeration": ("steps.py", "Side(-self", "Side(self", "Side.opposite"),
    "attribute of a base class": ("steps.py", "factor = 2", "factor = 3", "Base.factor"),
    "method of a base class": ("steps.py", "return x * self.f", "return x + self.f", "Base.scaled"),
    "base class": ("steps.py", "class Book(Base)", "class Book(Base, deque)", "Book"),
    "static method": ("steps.py", "return x - 1", "return x - 2", "Book.floor"),
    "cached property": ("steps.py", "self.depth + 10", "self.depth + 11", "Book.top"),
    "slot of an object": ("steps.py", 'Book(3, "n")', 'Book(4, "n")', "BOOK.depth"),
    "attribute beside slots": ("steps.py", 'Book(3, "n")', 'Book(3, "m")', "BOOK.note"),
    "argument of a partial method": ("steps.py", "scale, 22)", "scale, 32)", "Base.fee"),
    "special attribute": ("steps.py", "__rate__ = 21", "__rate__ = 31", "Base.__rate__"),
    "what a pattern takes": ("steps.py", '("factor", "', '("__rate__", "', None),
    "cached special method": ("steps.py", "x + 23", "x + 33", "Base.__call__"),
    "special method of a descriptor": ("steps.py", "lambda: 13", "lambda: 14", None),
    "private attribute of a member": ("steps.py", "4 * value", "5 * value", "Side.BUY._weight"),
    "metadata of a field": ("steps.py", '"percent"', '"share"', "Conf.share"),
    "default of a class that is made": ("steps.py", "int, 24", "int, 25", None),
    "method of a class that is made": ("steps.py", "self.size * 2", "self.size * 3", None),
    "default of a frozen dataclass": ("steps.py", "default=0.5", "default=0.6", None),
    "instance of a frozen dataclass": ("steps.py", "CONF = Conf()", "CONF = Conf(0.7)", None),
    "factory of a field": ("steps.py", '["p"]', '["q"]', "Conf.<lambda>"),
    "attribute of a closed-over object": ("steps.py", "Closed(1.0)", "Closed(3.0)", "c.f"),
    "callable object": ("steps.py", "return x**self", "return x*self", "Caller.__call__"),
    "state of a callable object": ("steps.py", "Caller(2)", "Caller(4)", "call.power"),
    "owner of a bound method": ("steps.py", "Caller(3)", "Caller(4)", "bound.power"),
    "bound method": ("steps.py", "Caller(3).method", "Caller(3).__call__", "bound"),
    "argument of a partial": ("steps.py", "least=8", "least=9", "given"),
    "function of a partial": ("steps.py", "partial(helper, least", "partial(odd, least", "given"),
    "helper": ("steps.py", "return max(x, least)", "return min(x, least)", "helper"),
    "default argument": ("steps.py", "least=7", "least=6", "helper.least"),
    "name of a parameter": (
        *("steps.py", "def deeper(x):\n    return x", "def deeper(y):\n    return y"),
        "deeper",
    ),
    "helper's helper": ("steps.py", "return x + BONUS", "return x - BONUS", "deeper"),
    "constant of a helper's helper": ("steps.py", "BONUS = 5", "BONUS = 6", "BONUS"),
    "one of two that call each other": ("steps.py", "n != 0 and", "n != 1 and", "odd"),
    "recursive inner function": ("steps.py", "n and count", "n or count", "count"),
    "decorator": ("steps.py", "function(x) + 1", "function(x) + 2", "wrapped"),
    "decorated function": ("steps.py", "return x * 4", "return x * 5", "wrapped"),
    "cached function": ("steps.py", "return x * 6", "return x * 7", "cached"),
    "default of a single dispatch": ("steps.py", "return 1\n", "return 3\n", "kind_of"),
    "branch of a single dispatch": ("steps.py", "return 2\n", "return 3\n", "_"),
    "comprehension": ("steps.py", "if k != TABLE", "if k == TABLE", "its own code"),
    "lambda inside": ("steps.py", "WEIGHTS[0]", "WEIGHTS[1]", "its own code"),
    "what is caught": ("steps.py", "except KeyError", "except ValueError", "its own code"),
    "what is tried": (
        *("steps.py", "        try:\n", "        total = 0\n        try:\n"),
        "its own code",
    ),
    "attribute of a module": ("rates.py", "RATE = 1.25", "RATE = 1.5", "r.RATE"),
    "attribute of a package below": ("shop/__init__.py", "NAME = 3", "NAME = 4", "r.sub.NAME"),
    "function of a module": ("shop/taxes.py", "x * SHARE", "x / SHARE", "vat"),
    "what a function of a module reads": ("shop/numbers.py", "SHARE = 0.2", "SHARE = 0.3", None),
    "module imported when it runs": ("latecomer.py", "SURCHARGE = 9", "SURCHARGE = 8", "latecomer"),
    "what such a module imports": ("shop/numbers.py", "OTHER = 1", "OTHER = 2", "shop.numbers"),
}  # fmt: skip


def form_in(folder: Path, files: dict[str, str] = FILES) -> CodeForm:
    shutil.rmtree(folder, ignore_errors=True)
    with imported(written(folder, files)) as module:
        return code_form({"": module.step})


def changed(one: CodeForm, other: CodeForm) -> set[str]:
    before, after = dict(one.parts), dict(other.parts)
    places = {place for place in before | after if before.get(place) != after.get(place)}
    return {place or "its own code" for place in places}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> CodeForm:
    return form_in(tmp_path_factory.mktemp("base"))


@pytest.mark.parametrize("name", EDITS)
def test_edit_of_what_is_read_is_seen_at_its_place(
    name: str, base: CodeForm, tmp_path: Path
) -> None:
    file, old, new, place = EDITS[name]
    assert FILES[file].count(old) == 1, "the edit is made in one place"
    after = form_in(tmp_path, {**FILES, file: FILES[file].replace(old, new)})
    assert after.digest != base.digest
    assert place is None or place in changed(base, after)
    assert after.unseen == base.unseen


def test_all_that_a_step_reads_is_seen_but_what_is_said(base: CodeForm) -> None:
    assert base.unseen == (
        "latecomer (imported when it runs: its code is seen, its values are not)",
    )
    assert base.libraries == ("numpy", "pyarrow")


def _without_docstrings(text: str) -> str:
    return text.replace('"""Help."""', "pass").replace('"""Steps of a pipeline."""', "")


def _with_docstrings(text: str) -> str:
    lines = []
    for line in text.splitlines():
        lines.append(line)
        if line.rstrip().endswith(":") and line.lstrip().startswith(("def ", "class ")):
            indent = " " * (len(line) - len(line.lstrip()) + 4)
            lines.append(f'{indent}"""It is {len(lines)} lines down."""')
    return "\n".join(lines)


def _torn(text: str) -> str:
    """Return the text with each operand of ``and`` and ``or`` on a line of its own."""
    old = "if row.size > LIMIT and row.venue in VENUES and Side.BUY in TAKEN:"
    return text.replace(old, old.replace("and", "\\\n    and").replace("if ", "if \\\n   "))


SAME = {
    "comments": lambda text: "# one\n\n\n" + text.replace(":\n", ":  # two\n"),
    "other formatting": lambda text: ast.unparse(ast.parse(text)),
    "other line ends": lambda text: text.replace("\n", "\r\n"),
    "no docstrings": _without_docstrings,
    "more docstrings": _with_docstrings,
    "lines moved": lambda text: text.replace(
        "def even(n):\n    return n == 0 or odd(n - 1)\n", ""
    ).replace("def odd(n)", "def even(n):\n    return n == 0 or odd(n - 1)\n\n\ndef odd(n)"),
    "conditions on lines of their own": _torn,
    "order of a set": lambda text: text.replace('{"X", "Y", "Z"}', '{"Z", "X", "Y"}').replace(
        "{Side.BUY, Side.SELL}", "{Side.SELL, Side.BUY}"
    ),
    "what nothing reads": lambda text: text + "\nOTHER = 1\ndef unused(x): return x\n",
    "annotations": lambda text: text.replace("def deeper(x)", "def deeper(x: int) -> int"),
    "attribute that is not read": lambda text: text.replace(
        "def __init__(self, f):\n        self.f = f",
        "def __init__(self, f):\n        self.f, self.at = f, object()",
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_edit_of_anything_else_is_not_seen(name: str, base: CodeForm, tmp_path: Path) -> None:
    text = SAME[name](FILES["steps.py"])
    files = {**FILES, "steps.py": text, "rates.py": FILES["rates.py"].replace("UNUSED = 1", "")}
    assert form_in(tmp_path, files).digest == base.digest


SHOW = (
    "from ripple.model.code_fingerprint.form import code_form; print(code_form({'': step}).digest)"
)


def shown(
    *arguments: str, cwd: Path, salt: str = "random", path: Path | None = None, ripple: str = ""
) -> str:
    path_entries = [*filter(None, [str(path or ""), *sys.path])]
    environment = {
        **os.environ, "PYTHONHASHSEED": salt, "PYTHONPATH": os.pathsep.join(path_entries)
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


@pytest.mark.services
def test_form_is_that_of_every_process(base: CodeForm, tmp_path: Path) -> None:
    here = written(tmp_path / "here", {**FILES, "main.py": FILES["steps.py"] + SHOW})
    elsewhere = written(tmp_path / "far" / "away" / "pack", {**FILES, "__init__.py": ""})
    show = "from steps import step;" + SHOW
    digests = [
        shown("-c", show, cwd=tmp_path, path=here, salt="0"),
        shown("-O", "-c", show, cwd=here, salt="1"),
        shown("-c", "import steps; step = steps.step;" + SHOW, cwd=elsewhere, salt="2"),
        shown("-m", "main", cwd=here, salt="3"),
        shown(str(here / "main.py"), cwd=tmp_path),
    ]
    assert set(digests) == {base.digest}


def test_form_is_the_same_from_compiled_files_alone(base: CodeForm, tmp_path: Path) -> None:
    written(tmp_path)
    subprocess.run([sys.executable, "-m", "compileall", "-q", "-b", "."], cwd=tmp_path, check=True)
    for source in tmp_path.rglob("*.py"):
        source.unlink()
    assert shown("-c", "from steps import step;" + SHOW, cwd=tmp_path) == base.digest


def test_form_is_that_of_its_own_modules(base: CodeForm, tmp_path: Path) -> None:
    (tmp_path / "rates.py").write_text("RATE = 2.5\n")
    with imported(tmp_path, "rates"):
        assert form_in(tmp_path / "more").digest == base.digest


def test_form_does_not_follow_what_running_does(tmp_path: Path) -> None:
    with imported(written(tmp_path)) as module:
        before = code_form({"": module.step}).digest
        module.cached(2)
        module.kind_of(3)
        module.late(1)
        assert code_form({"": module.step}).digest == before
