"""Unseen parts of code are named, with the reason; libraries are known by name."""

from __future__ import annotations

import decimal
import functools
import random
import threading
import types
import weakref
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ripple.model.code_fingerprint.form as form_module
from ripple.model.code_fingerprint.form import CodeForm, code_form
from tests.model.code_fingerprint.modules import imported, linked, written


def form(function: Any) -> CodeForm:
    return code_form({"": function})


def defined(text: str) -> CodeForm:
    """Return the form of ``step``, defined by ``text`` in a module of its own."""
    names: dict[str, Any] = {"__name__": "any"}
    exec(text, names)
    return form(names["step"])


SAID = {
    "step = lambda r: LIMIT": "LIMIT (it is not there when the plan is made)",
    "step = lambda r: getattr(r, r.name)": "getattr (attributes by names that are computed)",
    "step = lambda r: vars(r)[r.name]": "vars (attributes by names that are computed)",
    "step = lambda r: globals()[r.name]": "globals (globals by names that are computed)",
    "step = lambda r: eval(r.code)": "eval (code that is made while it runs)",
    "step = lambda r: __import__(r.name)": "__import__ (modules by names that are computed)",
    "step = lambda r: open(r.name).read()": "open (files)",
    "step = lambda r: __file__": "__file__ (where the code lies)",
    "get = getattr\nstep = lambda r: get(r, 'x')": (
        "getattr (attributes by names that are computed)"
    ),
    "import importlib\nstep = lambda r: importlib.import_module(r)": (
        "importlib.import_module (modules by names that are computed)"
    ),
    "import os\nstep = lambda r: os.environ['X']": "os.environ (variables of the environment)",
    "from os import environ\nstep = lambda r: environ['X']": (
        "environ (variables of the environment)"
    ),
    "from os import getenv\nstep = lambda r: getenv('X')": "getenv (variables of the environment)",
    "import pathlib\nstep = lambda r: pathlib.Path(r.x).read_text()": "read_text (files)",
    "import numpy as np\nstep = lambda r: np.load(r.x)": "np.load (files)",
    "from numpy import loadtxt\nstep = lambda r: loadtxt(r.x)": "loadtxt (files)",
    "import pandas\nstep = lambda r: pandas.read_csv(r.x)": "pandas.read_csv (files)",
    "import sys\nstep = lambda r: sys.modules['c'].X": (
        "sys.modules (modules by names that are computed)"
    ),
    "from sys import modules\nstep = lambda r: modules['c'].X": (
        "modules (modules by names that are computed)"
    ),
    "import decimal\nstep = lambda r: decimal.getcontext().prec": (
        "decimal.getcontext (the context of decimals)"
    ),
    "step = lambda r: r.f.__globals__['X']": ("__globals__ (globals by names that are computed)"),
    "f = open('/dev/null')\nstep = lambda r: f.read()\nf.close()": (
        "f (what a TextIOWrapper holds)"
    ),
    "g = (x for x in 'ab')\nstep = lambda r: next(g)": "g (what a generator holds)",
    "def step(r):\n    import nowhere.at_all": "nowhere.at_all (there is no such module)",
    "def made():\n    def step(r): return late\n    return step\n    late = 1\nstep = made()": (
        "late (it is not there when the plan is made)"
    ),
}


@pytest.mark.parametrize("text", SAID)
def test_unseen_parts_of_code_are_named(text: str) -> None:
    assert defined(text).unseen == (SAID[text],)


def test_objects_without_readable_state_are_said() -> None:
    lock, noise, seeded = threading.Lock(), random.Random(1), np.random.default_rng(1)
    weak = weakref.ref(test_objects_without_readable_state_are_said)
    compiled = np.frompyfunc(lambda x: x, 1, 1)
    found = form(lambda r: (lock, noise, seeded, weak, compiled))
    assert found.unseen == (
        "compiled (compiled code)",
        "lock (what a lock holds)",
        "noise (random numbers)",
        "seeded (random numbers)",
        "weak (what a ReferenceType holds)",
    )
    noise.random()
    seeded.random()
    assert form(lambda r: (lock, noise, seeded, weak, compiled)).digest == found.digest


def test_times_within_arrow_lists_are_said() -> None:
    table = pa.table({"at": pa.array([[1]], pa.list_(pa.timestamp("ns"))), "size": [1]})
    found = form(lambda r: table)
    assert found.unseen == ("table (times within the values of an Arrow array)",)


def test_rest_of_an_object_with_something_unreadable_is_seen() -> None:
    def with_lock(limit: int) -> Any:
        held = types.SimpleNamespace(limit=limit, lock=threading.Lock())
        return form(lambda r: held)

    assert with_lock(1).unseen == ("held.lock (what a lock holds)",)
    assert with_lock(1).digest == with_lock(1).digest != with_lock(2).digest


def test_module_as_a_value_is_said(tmp_path: Path) -> None:
    written(tmp_path, {"steps.py": "import consts\nstep = lambda r: r(consts)\n", "consts.py": ""})
    with imported(tmp_path) as module:
        assert form(module.step).unseen == ("consts (a module as a whole)",)


def test_attribute_that_a_module_lacks_is_said(tmp_path: Path) -> None:
    written(tmp_path, {"steps.py": "import consts\nstep = lambda r: consts.X\n", "consts.py": ""})
    with imported(tmp_path) as module:
        missing = form(module.step)
        assert missing.unseen == ("consts.X (it is not there when the plan is made)",)
        module.consts.X = 1
        assert not form(module.step).unseen
        assert form(module.step).digest != missing.digest


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that are soon reached."""
    monkeypatch.setattr(form_module, "_MAXIMA", {"values": 100, "bytes": 1000, "operations": 50})


@pytest.mark.usefixtures("small")
def test_more_than_the_limits_is_said_and_the_rest_is_seen() -> None:
    table, blob, limit = dict.fromkeys(range(60)), b"x" * 2000, 7
    found = form(lambda r: (table, blob, limit))
    assert found.unseen == (
        "blob (more than 1000 bytes in all)",
        "table (more than 100 values in all)",
    )
    limit = 8
    assert form(lambda r: (table, blob, limit)).digest != found.digest
    longer = form(compile_long(60))
    assert longer.unseen == ("it (more than 50 operations in all)",)


def holding(values: set[Any]) -> Any:
    return lambda r: (values, 1)


def compile_long(lines: int) -> Any:
    names: dict[str, Any] = {"__name__": "any"}
    exec("def step(r):\n" + "    r += 1\n" * lines, names)
    return names["step"]


@pytest.mark.usefixtures("small")
def test_large_tables_hide_no_code() -> None:
    def with_helper(factor: str) -> CodeForm:
        names: dict[str, Any] = {"__name__": "any", "ROWS": [[at] for at in range(90)]}
        exec(f"def helper(x): return x * {factor}\ndef step(r): return ROWS, helper(r)", names)
        return form(names["step"])

    assert with_helper("2").unseen == ("ROWS[6] (more than 100 values in all)",)
    assert with_helper("2").digest != with_helper("3").digest


@pytest.mark.usefixtures("small")
def test_set_beyond_the_limits_does_not_depend_on_its_order() -> None:
    items = [(at, at) for at in range(60)]
    one, other = (form(holding({*each})) for each in (items, reversed(items)))
    assert one.unseen
    assert one.digest == other.digest


def test_long_chains_and_deep_tuples_need_no_deep_stack() -> None:
    chain = linked(5000)
    found = form(lambda r: chain)
    assert not found.unseen
    chain.below[0].below[0].name = "other"
    assert form(lambda r: chain).digest != found.digest
    nested: Any = ()
    for _ in range(500):
        nested = (nested,)
    assert form(lambda r: nested).unseen == ("nested (nested more than 30 deep)",)


def test_object_that_raises_when_it_is_asked_is_not_asked() -> None:
    class Hostile:
        def __init__(self, limit: int) -> None:
            self.limit = limit

        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError(name)

    found = [form(functools.partial(max, Hostile(limit))) for limit in (1, 2)]
    assert found[0].digest != found[1].digest
    assert {each.unseen for each in found} == {()}


def test_object_that_raises_when_it_is_read_is_said() -> None:
    broken = Broken()
    found = form(lambda r: broken)
    assert found.unseen == ("broken (what a Broken holds)",)
    assert found.digest == form(lambda r: broken).digest


class Broken(Fraction):
    def __reduce__(self) -> Any:
        raise RuntimeError


def test_object_with_something_in_a_compiled_base_is_said() -> None:
    class Kept(threading.local):
        pass

    kept = Kept()
    assert form(lambda r: kept).unseen == ("kept (what a compiled class holds in a Kept)",)


ACME = {
    "acme/__init__.py": "",
    "acme/rules.py": "LIMIT = 5\ndef step(r): return r.size > LIMIT\n",
    "steps.py": "import acme.rules\ndef step(r): return acme.rules.step(r)\n",
}
EDITED = {**ACME, "acme/rules.py": "LIMIT = 6\ndef step(r): return r.size > LIMIT\n"}


def acme_form(folder: Path, files: dict[str, str], module: str = "steps") -> CodeForm:
    with imported(written(folder, files), module) as found:
        return form(found.step)


@pytest.mark.parametrize("place", ["site-packages", "with-distributions"])
def test_installed_library_stands_by_its_name(tmp_path: Path, place: str) -> None:
    folder = tmp_path / place
    if place == "with-distributions":
        written(folder, {f"acme-1.0.dist-info/{name}": "" for name in ("RECORD", "METADATA")})
    one = acme_form(folder, {k: v for k, v in ACME.items() if k != "steps.py"}, "acme.rules")
    written(folder, {k: v for k, v in ACME.items() if k != "steps.py"})
    user = tmp_path / "user"
    with imported(folder, "acme.rules"):
        before = acme_form(user, {"steps.py": ACME["steps.py"]})
    written(folder, {k: v for k, v in EDITED.items() if k != "steps.py"})
    with imported(folder, "acme.rules"):
        after = acme_form(user, {"steps.py": ACME["steps.py"]})
    assert before == after
    assert before.libraries == ("acme",)
    assert not before.unseen
    # What is given to a pipeline is the user's, with the package that it is in.
    other = acme_form(folder, {k: v for k, v in EDITED.items() if k != "steps.py"}, "acme.rules")
    assert one.digest != other.digest
    assert not one.libraries


def test_arguments_of_a_librarys_decorator_are_seen(tmp_path: Path) -> None:
    library = {
        "acme.py": "import functools\n"
        "def scaled(factor):\n"
        "    def decorate(function):\n"
        "        @functools.wraps(function)\n"
        "        def inner(x): return factor * function(x)\n"
        "        return inner\n"
        "    return decorate\n"
    }
    user = "import acme\n@acme.scaled(2)\ndef helper(x): return x + 1\nstep = lambda r: helper(r)\n"
    folder = written(tmp_path / "site-packages", library)
    digests = []
    for at, (old, new) in enumerate([("", ""), ("(2)", "(3)"), ("+ 1", "+ 2")]):
        with imported(folder, "acme"):
            files = {"steps.py": user.replace(old, new) if old else user}
            found = acme_form(tmp_path / str(at), files)
            assert found.libraries == ("acme",)
            digests.append(found.digest)
    assert len({*digests}) == 3


def test_package_that_is_not_installed_is_looked_into(tmp_path: Path) -> None:
    before, after = acme_form(tmp_path / "a", ACME), acme_form(tmp_path / "b", EDITED)
    assert before.digest != after.digest
    assert not before.libraries


def test_python_and_ripple_stand_by_name_and_are_not_listed() -> None:
    import json

    import ripple as rp

    found = form(lambda r: (json.dumps(r), rp.col("a"), functools.reduce(max, r), np.sqrt(r)))
    assert not found.unseen
    assert found.libraries == ("numpy",)


def test_a_context_of_decimals_that_is_not_the_first_is_seen_and_said() -> None:
    names: dict[str, Any] = {"__name__": "any"}
    exec("from decimal import Decimal\nstep = lambda r: Decimal(r) / 3", names)
    before = form(names["step"])
    with decimal.localcontext(prec=3):
        after = form(names["step"])
        assert form(lambda r: r).unseen == ()
    assert before.unseen == ()
    assert after.digest != before.digest
    assert after.unseen[0].startswith("decimal (their context is not the one that Python")


def test_values_kept_under_a_decorators_name_alone_are_seen() -> None:
    def kept(share: int) -> Any:
        def step(r: Any) -> Any:
            return step.__wrapped__(r)  # type: ignore[attr-defined]

        step.__wrapped__ = lambda r: r * share  # type: ignore[attr-defined]
        return step

    assert form(kept(2)).digest != form(kept(3)).digest
    assert form(kept(2)).digest == form(kept(2)).digest
