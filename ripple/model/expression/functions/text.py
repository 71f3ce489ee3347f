"""Functions of texts: Arrow's where bytes and code points decide, else loops of our own."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.core.arguments import shown
from ripple.core.errors import PlanError
from ripple.model.expression.functions import growth
from ripple.model.expression.functions.function import Function, table
from ripple.model.expression.functions.growth import within_limit
from ripple.model.expression.functions.letters import capital, small
from ripple.model.expression.functions.pattern import (
    check_consuming,
    check_extract,
    check_pattern,
    first_match,
    for_re,
    groups_in,
    groups_of,
    only_group,
    plain_pattern,
    replacement,
)
from ripple.model.expression.functions.strings import (
    count,
    floats,
    gathered,
    integers,
    lengths,
    mapped,
    of_floats,
    sliced,
    split_part,
)
from ripple.model.expression.program import FAILURES, NO_NUMBER
from ripple.model.expression.typed import Kind
from ripple.model.schema.text_columns import parts, text_column

_TEXT = (Kind.TEXT,)
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INT = re.compile(r"[+-]?[0-9]+")
_COLUMN_MAX = 2**31  # bytes, at most
DIGITS_MAX = 19  # of an integer of 64 bits


def _cased(letters: Callable[[], Any], plain: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def cased(array: Any) -> Any:
        valid, offsets, data = parts(array)
        if not (data[offsets[0] : offsets[-1]] & 0x80).any():
            return plain(array)
        return text_column(*mapped(valid, offsets, data, letters()), valid)

    return cased


def _plain_cased(letters: Callable[[], Any]) -> Callable[[str], str]:
    def cased(text: str) -> str:
        table = letters()
        return "".join(chr(table[ord(c)]) if ord(c) < len(table) else c for c in text)

    return cased


def _slice(array: Any, offset: int, length: int | None) -> Any:
    valid, offsets, data = parts(array)
    most = _COLUMN_MAX if length is None else min(length, _COLUMN_MAX)
    begins, ends = sliced(valid, offsets, data, max(min(offset, _COLUMN_MAX), -_COLUMN_MAX), most)
    return text_column(*gathered(begins, ends, data), valid)


def _plain_slice(text: str, offset: int, length: int | None) -> str:
    return text[offset:][:length]


def _split(array: Any, separator: str, number: int) -> Any:
    valid, offsets, data = parts(array)
    there, begins, ends = split_part(valid, offsets, data, separator.encode(), number)
    return text_column(*gathered(begins, ends, data), there)


def _plain_split(text: str, separator: str, number: int) -> str | None:
    found = text.split(separator)
    return found[number] if number < len(found) else None


def _count(array: Any, pattern: str, literal: bool) -> Any:
    if literal:
        return count(*parts(array), pattern.encode())
    # One byte more for each match. Arrow's count looks at each rest as if it were a text: ^a is
    # three times in aaa.
    longer = pc.replace_substring_regex(array, pattern, "\\0+")
    return pc.subtract(pc.binary_length(longer), pc.binary_length(array)).cast(pa.int64())


def _plain_count(text: str, pattern: str, literal: bool) -> int:
    if literal:
        return text.count(pattern)
    plain = plain_pattern(pattern)
    return len(plain.findall(text)) if plain else _of_one(_count, text, pattern, literal)


def _extract(array: Any, pattern: str, group: int) -> Any:
    return pc.struct_field(pc.extract_regex(array, pattern=only_group(pattern, group)), [0])


def _plain_extract(text: str, pattern: str, group: int) -> str | None:
    plain = plain_pattern(pattern)
    if plain is None:
        return cast("str | None", _of_one(_extract, text, pattern, group))
    found = plain.search(text)
    # RE2, as Arrow has it, does not tell a group without a part in the match from an empty one.
    return (found.group(group) or "") if found else None


def _plain_contains(text: str, pattern: str) -> bool:
    plain = plain_pattern(pattern)
    if plain is None:
        return cast(bool, _of_one(pc.match_substring_regex, text, pattern))
    return plain.search(text) is not None


def _of_one(columns: Callable[..., Any], text: str, *options: Any) -> Any:
    """Return a function of one text where Python's ``re`` has no twin for RE2's pattern."""
    return columns(pa.array([text]), *options)[0].as_py()


def _replaced(array: Any, pattern: str, value: str, literal: bool) -> Any:
    if literal:
        return pc.replace_substring(array, pattern, value, max_replacements=1)
    # Arrow's own limit looks at each match as if it were a text: \Ba is not found again.
    return pc.replace_substring_regex(array, *first_match(pattern, value))


def _all_replaced(array: Any, pattern: str, value: str, literal: bool) -> Any:
    if literal:
        return pc.replace_substring(array, pattern, value)
    return pc.replace_substring_regex(array, pattern, replacement(value))


def _plain_replace(times: int | None) -> Callable[[str, str, str, bool], str]:
    def replaced(text: str, pattern: str, value: str, literal: bool) -> str:
        if literal:
            return within_limit(text.replace(pattern, value, -1 if times is None else times))
        plain = plain_pattern(pattern)
        if plain is None:
            columns = _replaced if times else _all_replaced
            return within_limit(cast(str, _of_one(columns, text, pattern, value, literal)))
        return within_limit(plain.sub(for_re(replacement(value)), text, count=times or 0))

    return replaced


def _check_all_replaced(pattern: str, value: str, literal: bool) -> None:
    if not literal:
        check_consuming(pattern)
        groups = groups_of(pattern)
        for number in groups_in(replacement(value)):
            if number > groups:
                raise PlanError(
                    f"the replacement has group {number}, and the pattern {shown(pattern)} has"
                    f" {groups}"
                )


def _check_replaced(pattern: str, value: str, literal: bool) -> None:
    _check_all_replaced(pattern, value, literal)
    if not literal:
        first_match(pattern, value)


def _check_count(pattern: str, literal: bool) -> None:
    if not literal:
        check_consuming(pattern)


def _plain_padded(pad: Callable[[str, int, str], str]) -> Callable[[str, int, str], str]:
    return lambda text, length, fill: within_limit(pad(text, length, fill))


def _numbers(parse: Callable[..., Any], to: Any) -> Callable[[Any, bool], Any]:
    def numbers(array: Any, strict: bool) -> Any:
        valid, offsets, data = parts(array)
        values, failed = parse(valid, offsets, data)
        if strict:
            return values, failed * np.uint8(NO_NUMBER)
        return pa.array(values, to, mask=failed.view(np.bool_))

    return numbers


def _plain_number(form: re.Pattern[str], make: Callable[[str], Any]) -> Callable[[str, bool], Any]:
    def number(text: str, strict: bool) -> Any:
        value = make(text) if form.fullmatch(text) else None
        if value is None and strict:
            raise ValueError(FAILURES[NO_NUMBER])
        return value

    return number


def _whole(text: str) -> int | None:
    digits = text.lstrip("+-0")
    if len(digits) > DIGITS_MAX:  # before Python counts them
        return None
    value = int(digits or "0") * (-1 if text.startswith("-") else 1)
    return value if -(2**63) <= value < 2**63 else None


TEXTS = table(
    Function(
        "str.to_lowercase", (_TEXT,), Kind.TEXT, _plain_cased(small),
        columns=_cased(small, pc.ascii_lower),
    ),
    Function(
        "str.to_uppercase", (_TEXT,), Kind.TEXT, _plain_cased(capital),
        columns=_cased(capital, pc.ascii_upper),
    ),
    Function(
        "str.len_chars", (_TEXT,), Kind.INT, len,
        columns=lambda array: lengths(*parts(array)),
    ),
    Function("str.slice", (_TEXT,), Kind.TEXT, _plain_slice, columns=_slice),
    Function(
        "str.split.list.get", (_TEXT,), Kind.TEXT, _plain_split, columns=_split, may_be_null=True
    ),
    Function(
        "str.extract", (_TEXT,), Kind.TEXT, _plain_extract, columns=_extract, may_be_null=True,
        check=check_extract,
    ),
    Function(
        "str.contains", (_TEXT,), Kind.BOOL,
        _plain_contains,
        columns=pc.match_substring_regex,
        check=check_pattern,
    ),
    Function(
        "str.replace", (_TEXT,), Kind.TEXT, _plain_replace(1), columns=_replaced,
        sizes=growth.replaced(_replaced, once=True), check=_check_replaced,
    ),
    Function(
        "str.replace_all", (_TEXT,), Kind.TEXT, _plain_replace(None), columns=_all_replaced,
        sizes=growth.replaced(_all_replaced, once=False), check=_check_all_replaced,
    ),
    Function(
        "str.count_matches", (_TEXT,), Kind.INT, _plain_count, columns=_count, check=_check_count
    ),
    Function(
        "str.strip_chars", (_TEXT,), Kind.TEXT, str.strip,
        columns=pc.utf8_trim,
    ),
    Function(
        "str.strip_chars_start", (_TEXT,), Kind.TEXT, str.lstrip,
        columns=pc.utf8_ltrim,
    ),
    Function(
        "str.strip_chars_end", (_TEXT,), Kind.TEXT, str.rstrip,
        columns=pc.utf8_rtrim,
    ),
    Function(
        "str.pad_start", (_TEXT,), Kind.TEXT, _plain_padded(str.rjust),
        columns=pc.utf8_lpad, sizes=growth.padded,
    ),
    Function(
        "str.pad_end", (_TEXT,), Kind.TEXT, _plain_padded(str.ljust),
        columns=pc.utf8_rpad, sizes=growth.padded,
    ),
    Function(
        "str.concat", (_TEXT, _TEXT), Kind.TEXT, lambda a, b: within_limit(a + b),
        columns=lambda a, b: pc.binary_join_element_wise(a, b, ""), sizes=growth.joined,
    ),
    Function(
        "str.to_integer", (_TEXT,), Kind.INT, _plain_number(_INT, _whole),
        columns=_numbers(integers, pa.int64()), may_be_null=True,
    ),
    Function(
        "str.to_float", (_TEXT,), Kind.FLOAT, _plain_number(_FLOAT, float),
        columns=_numbers(floats, pa.float64()), may_be_null=True,
    ),
    Function(
        "str.of_integer", ((Kind.INT,),), Kind.TEXT, str,
        columns=lambda values: pa.array(values).cast(pa.string()),
    ),
    Function(
        "str.of_float", ((Kind.FLOAT,),), Kind.TEXT, repr,
        columns=lambda values: text_column(*of_floats(np.ascontiguousarray(values))),
    ),
    Function(
        "str.of_bool", ((Kind.BOOL,),), Kind.TEXT, lambda truth: "true" if truth else "false",
        columns=lambda truth: pc.if_else(pa.array(truth), "true", "false"),
    ),
)  # fmt: skip
