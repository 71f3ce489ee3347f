"""Logarithms, exponentials and powers against exact arithmetic, and their bits everywhere."""

from __future__ import annotations

import hashlib
import math
from decimal import Context, Decimal, Inexact, localcontext
from typing import Any

import numpy as np
import pytest

from ripple.model.expression import col
from ripple.model.expression.functions import exact
from ripple.model.expression.functions.rounded import CAN_FUSE, compute
from ripple.model.schema.types import Float, Int64, Option

NAMES = ["log", "log2", "log10", "log1p", "exp", "exp2", "expm1"]
FIELDS = {"x": Option(Float()), "n": Int64()}
EXTREME = [
    0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 5e-324, -5e-324, 2.0**-1022, 1.7e308,
    709.782712893384, 709.7827128933841, -745.1332191019411, -745.1332191019412, 1024.0, -1074.0,
    -1075.0, -1074.5, 1 + 2.0**-52, 1 - 2.0**-53, 2.0**-53, -(2.0**-54), 8.0, 1e22, 1e23, -38.0,
]  # fmt: skip


def column_of(name: str, x: Any) -> Any:
    found = getattr(col("x"), name)().bind(FIELDS).evaluate({"x": x, "n": np.zeros(len(x))})
    assert found.valid is None
    return found.values


def arguments(count: int) -> Any:
    """Return positive and negative numbers of all sizes, the same everywhere: no generator."""
    steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    fractions = (steps >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return np.concatenate([fractions * 4, fractions * 1_400 - 700, np.ldexp(fractions, -20)])


@pytest.mark.parametrize("name", NAMES)
def test_columns_give_what_exact_arithmetic_gives(name: str) -> None:
    """Of one argument decimals are rounded; of a column two floats, where that is enough."""
    x = np.concatenate([arguments(40), EXTREME, np.ldexp(1.0, np.arange(-1_074, 1_024, 61))])
    alone = np.array([getattr(exact, name)(value) for value in x.tolist()])
    assert column_of(name, x).tobytes() == alone.tobytes()


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("log", "7545684ac85efacc"),
        ("log2", "4ff1ba686658bc14"),
        ("log10", "2c7dcc71a5046761"),
        ("log1p", "a7ddb3c98d726d27"),
        ("exp", "617b098a3b6e474b"),
        ("exp2", "462978068888ee66"),
        ("expm1", "2859941d17526f86"),
    ],
)
def test_bits_are_pinned(name: str, digest: str) -> None:
    """Each of these results is also MPFR's, so another machine has to have the same."""
    found = column_of(name, arguments(20_000))
    assert hashlib.blake2b(found.astype("<f8").tobytes(), digest_size=8).hexdigest() == digest


def powers(x: Any, y: Any) -> Any:
    found = (col("x") ** col("y")).bind({"x": Float(), "y": Float()}).evaluate({"x": x, "y": y})
    assert found.valid is None
    return found.values


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ("fractions", "exponents"),  # of both signs, up to the ends of the range
        ("fractions", "halves"),  # many are floats, or halfway between two
        ("wholes", "halves"),
        ("near one", "large"),
    ],
)
def test_powers_give_what_exact_arithmetic_gives(x: str, y: str) -> None:
    some = arguments(60)
    numbers = {
        "fractions": some[:60],
        "exponents": some[60:120],
        "halves": np.rint(some[60:120]) / 2 % 32 - 8,
        "wholes": np.rint(some[:60] * 60) - 120,
        "near one": 1 + some[120:],
        "large": some[60:120] * 2.0**20,
    }
    alone = list(map(exact.power, numbers[x].tolist(), numbers[y].tolist()))
    assert powers(numbers[x], numbers[y]).tobytes() == np.array(alone).tobytes()


def test_powers_of_extremes_are_those_of_ieee() -> None:
    x, y = (side.ravel() for side in np.meshgrid(EXTREME, EXTREME))
    found = powers(x, y)
    assert found.tobytes() == np.array(list(map(exact.power, x.tolist(), y.tolist()))).tobytes()
    with np.errstate(all="ignore"):
        theirs = x**y  # right to the last bit or two, and of the right kind
        same = (found == theirs) | (np.isnan(found) & np.isnan(theirs))
        assert (same | (np.abs(found / theirs - 1) <= 2.0**-50)).all()
    assert (np.signbit(found) == np.signbit(theirs))[~np.isnan(found)].all()


def test_powers_halfway_between_two_floats_go_to_the_even_one() -> None:
    """Two floats as a sum can never tell those: they are numbers of 54 bits."""
    halfway = [(2.0**27 - 1, 2.0), (2.0**27 - 3, 2.0), (463.0, 6.0), ((2.0**27 - 1) ** 2.0, 0.5)]
    for x, y in [*halfway, (3.0, 34.0), (9.0, 17.0), (0.2, -5.0), (2.0**-537, 2.0)]:
        with localcontext(Context(prec=2_000)):
            expected = float(Decimal(x) ** Decimal(y))
        assert powers([x], [y]).tolist() == [expected] == [exact.power(x, y)]


def test_bits_of_powers_are_pinned() -> None:
    """Each is also MPFR's."""
    some = arguments(20_000)
    found = powers(some[:20_000], some[20_000:40_000] * 0.1)
    digest = hashlib.blake2b(found.astype("<f8").tobytes(), digest_size=8).hexdigest()
    assert digest == "5f507639592fddf1"


@pytest.mark.skipif(not CAN_FUSE, reason="this processor has no fused products and sums")
@pytest.mark.parametrize("name", [*NAMES, "pow", "round"])
def test_fused_products_change_no_result(name: str) -> None:
    x = np.concatenate([arguments(500), EXTREME])
    others = {"pow": (np.abs(x), x[::-1].copy()), "round": (x, np.array([100.0]))}
    operands = others.get(name, (x,))
    fused, alone = (compute(name, *operands, fused=way) for way in (True, False))
    assert fused[1].tolist() == alone[1].tolist()  # with the same pairs where rows are undecided
    sure = np.setdiff1d(np.arange(len(x)), fused[1])
    assert len(sure) > len(x) * 0.99
    assert fused[0][sure].tobytes() == alone[0][sure].tobytes()


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("log2", 2.0**-1074, -1074.0),
        ("log10", 1e22, 22.0),
        ("exp2", -1074.0, 5e-324),
        ("exp2", -1075.0, 0.0),
        ("exp2", 1023.0, 2.0**1023),
        ("exp", -0.0, 1.0),
        ("expm1", -0.0, -0.0),
        ("log1p", -0.0, -0.0),
        ("log", 0.0, -math.inf),
        ("log1p", -1.0, -math.inf),
        ("exp", 709.7827128933841, math.inf),
        ("log", math.e, 1.0),
    ],
)
def test_known_results(name: str, x: float, expected: float) -> None:
    (found,) = column_of(name, [x]).tolist()
    assert found.hex() == expected.hex()
    assert getattr(exact, name)(x).hex() == expected.hex()


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("log", "0x1.51a0030fe91eap+34", "0x1.7d800d4262290p+4"),
        ("log", "0x1.c3e3580e8de3dp+0", "0x1.22f296b6cb1fcp-1"),
        ("log2", "0x1.5f36bc076d8c6p+0", "0x1.d327999c45582p-2"),
        ("log2", "0x1.2ef73bbfa9dacp+6", "0x1.8f8d7daffda72p+2"),
        ("log10", "0x1.070d45667ff74p-18", "-0x1.5a08011900164p+2"),
        ("log10", "0x1.4143fa1f39623p+0", "0x1.93f6f0ba66a8dp-4"),
        ("log1p", "0x1.a0e386a0f325dp-1", "0x1.30faebe617ddfp-1"),
        ("log1p", "-0x1.aa26b3ca73f85p-4", "-0x1.c1fcffffaca6cp-4"),
        ("exp", "-0x1.47db210d12e1cp-6", "0x1.f5db3879ab40fp-1"),
        ("exp", "-0x1.09ffa7c373456p+4", "0x1.02bb77d985703p-24"),
        ("exp2", "-0x1.94d06af0784eap+3", "0x1.46300a4f16787p-13"),
        ("exp2", "0x1.7c7b07a059a1fp+3", "0x1.da6b4a2bfa335p+11"),
        ("expm1", "0x1.07ccefc77bce7p-11", "0x1.07ddededccf98p-11"),
        ("expm1", "0x1.20f28dac63e8ep+3", "0x1.04ccbc12be9d2p+13"),
    ],
)
def test_results_nearly_halfway_between_two_floats(name: str, x: str, expected: str) -> None:
    """The nearest of 2^33 a function: to 2^-29 of the last place. The expected ones are MPFR's."""
    (found,) = column_of(name, [float.fromhex(x)]).tolist()
    assert found.hex() == expected
    assert getattr(exact, name)(float.fromhex(x)).hex() == expected


def test_no_extreme_is_left_to_decimals_but_halfway_ones() -> None:
    """So a column of zeros, infinities or tiny results takes no call for each row."""
    extreme = np.array(EXTREME)
    for name in NAMES:
        assert len(compute(name, extreme)[1]) <= 3
    x, y = (side.ravel() for side in np.meshgrid(extreme, extreme))
    assert len(compute("pow", x, y)[1]) <= len(x) // 50


def test_the_decimals_of_the_caller_change_nothing() -> None:
    expected = [getattr(exact, name)(0.75) for name in NAMES]
    with localcontext(Context(prec=1, traps=[Inexact])):
        assert [getattr(exact, name)(0.75) for name in NAMES] == expected


def test_what_has_no_logarithm_is_one_nan() -> None:
    for name in ("log", "log2", "log10", "log1p"):
        found = column_of(name, np.array([-2.0, -math.inf, math.nan, -math.nan]))
        assert set(found.view(np.int64).tolist()) == {0x7FF8000000000000}


def test_nulls_and_integers() -> None:
    values = (
        (col("x").exp() + col("n").log2()).bind(FIELDS).evaluate({"x": [0.0, None], "n": [8, 8]})
    )
    assert values.valid is not None
    assert (values.valid.tolist(), values.values[0]) == ([True, False], 4.0)


@pytest.mark.parametrize("decimals", [1, 2, 8, 22])
def test_decimals_are_those_of_the_exact_value(decimals: int) -> None:
    x = np.concatenate(
        [arguments(300), EXTREME, [0.125, -0.5, 2.675, 0.045, 2.5, -0.05, 1e15 + 0.5]]
    )
    x = np.concatenate([x, np.arange(-400, 400) / 800])
    found = col("x").round(decimals).bind(FIELDS).evaluate({"x": x, "n": np.zeros(len(x))})
    expected = [
        float(Decimal(v).quantize(Decimal(1).scaleb(-decimals), context=Context(prec=400)))
        if math.isfinite(v)
        else v
        for v in x.tolist()
    ]
    assert list(map(repr, found.values.tolist())) == list(map(repr, expected))


def test_texts_of_floats_are_those_of_repr() -> None:
    bits = np.arange(1, 20_001, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    powers_of_10 = [10.0**n for n in range(-320, 309)]
    x = np.concatenate([bits.view(np.float64), arguments(500), EXTREME, powers_of_10])
    x = np.concatenate([x, np.round(arguments(500), 2), np.floor(x[np.abs(x) < 1e18])])
    texts = col("x").cast(str).bind(FIELDS).evaluate({"x": x, "n": np.zeros(len(x))})
    assert texts.values.to_pylist() == list(map(repr, x.tolist()))


def test_texts_of_floats_and_bools_are_pinned() -> None:
    x = [0.1, 1e16, 123456789.0, -0.0, 5e-324, 1e-5, math.inf, math.nan, None, 1 / 3]
    texts = col("x").cast(str).bind(FIELDS).evaluate({"x": x, "n": [0] * 10}).values.to_pylist()
    assert texts == [
        "0.1", "1e+16", "123456789.0", "-0.0", "5e-324", "1e-05", "inf", "nan", None,
        "0.3333333333333333",
    ]  # fmt: skip
    bools = (col("x") > 0).cast(str).bind(FIELDS).evaluate({"x": [1.0, -1.0, None], "n": [0] * 3})
    assert bools.values.to_pylist() == ["true", "false", None]
