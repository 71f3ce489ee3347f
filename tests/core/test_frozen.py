from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, replace
from inspect import signature
from typing import Any

import pytest

from ripple.core.frozen import frozen


@frozen
class Trade:
    symbol: str
    price: float = 1.5
    tags: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list, repr=False, compare=False)
    total: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", self.price * 2)


@dataclass(frozen=True, slots=True)
class Twin:
    symbol: str
    price: float = 1.5
    tags: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list, repr=False, compare=False)
    total: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", self.price * 2)


@frozen
class Empty:
    pass


@frozen
class AlsoEmpty:
    pass


@frozen
class Longer(Trade):
    venue: str = "XNAS"


@frozen(kw_only=True)
class Named:
    size: int


@frozen(eq=False)
class Itself:
    size: int


@pytest.mark.parametrize(
    ("given", "named"),
    [(("A",), {}), (("A", 2.0), {"tags": ("x",)}), ((), {"symbol": "A", "notes": ["n"]})],
)
def test_a_value_is_made_and_told_as_a_dataclass(given: tuple[Any, ...], named: dict[str, Any]):
    value, twin = Trade(*given, **named), Twin(*given, **named)
    assert repr(value) == repr(twin).replace("Twin", "Trade")
    assert dataclasses.asdict(value) == dataclasses.asdict(twin)
    assert value == Trade(*given, **named)
    assert hash(value) == hash(Trade(*given, **named))
    assert replace(value, price=3.0) == Trade(value.symbol, 3.0, value.tags)
    assert not hasattr(value, "__dict__")


@pytest.mark.parametrize(("given", "named"), [((), {}), (("A",), {"size": 1}), (("A",) * 5, {})])
def test_wrong_arguments_are_told_as_by_a_dataclass(given: tuple[Any, ...], named: dict[str, Any]):
    with pytest.raises(TypeError) as ours:
        Trade(*given, **named)
    with pytest.raises(TypeError) as theirs:
        Twin(*given, **named)
    assert str(ours.value) == str(theirs.value).replace("Twin", "Trade")


def test_fields_that_are_not_compared_do_not_tell_values_apart():
    assert Trade("A", notes=["n"]) == Trade("A")
    assert Trade("A", notes=["n"]).notes != Trade("A").notes


def test_values_of_different_classes_differ():
    assert Empty() == Empty()
    assert Empty() != AlsoEmpty()
    assert Trade("A") != Longer("A")
    assert Trade("A") != "A"
    assert hash(Empty()) == hash(Empty())


def test_a_value_does_not_change():
    value = Trade("A")
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'price'"):
        value.price = 2.0  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'price'"):
        del value.price  # type: ignore[misc]


def test_a_value_is_copied_and_pickled():
    value = Longer("A", 2.0, ("x",), venue="XNYS")
    assert pickle.loads(pickle.dumps(value)) == copy.copy(value) == copy.deepcopy(value) == value


def test_options_are_those_of_dataclasses():
    with pytest.raises(TypeError, match="1 positional argument"):
        Named(1)  # type: ignore[misc]
    assert Named(size=1) == Named(size=1)
    assert Itself(1) != Itself(1)


def test_a_class_keeps_the_methods_that_it_has_itself():
    @frozen
    class Own:
        size: int

        def __init__(self, size: str) -> None:
            object.__setattr__(self, "size", int(size))

        def __repr__(self) -> str:
            return "own"

    assert Own("3").size == 3
    assert repr(Own("3")) == "own"


def test_signature_is_known_before_the_first_instance() -> None:
    @frozen
    class Point:
        x: int
        y: int = 2

    assert str(signature(Point)) == "(x, y=2)"
    Point(1)
    assert str(signature(Point)) == "(x, y=2)"
