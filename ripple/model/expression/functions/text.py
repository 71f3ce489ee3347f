"""Functions of texts: Arrow's where bytes and code points decide, else loops of our own."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.core.errors import PlanError
from ripple.model.expression.functions.function import Function, table
from ripple.model.expression.functions.letters import capital, small
from ripple.model.expression.functions.pattern import (
    check_consuming,
    check_extract,
    check_pattern,
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
    mapped,
    split_part,
)
from ripple.model.expression.program import FAILURES, NO_NUMBER
from ripple.model.expression.typed import Kind

_TEXT = (Kind.TEXT,)
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INT = re.compile(r"[+-]?[0-9]+")


def parts(array: Any) -> tuple[Any, Any, Any]:
    """Return the validity or None, the offsets and the bytes of a column of texts."""
    _, offsets, data = array.buffers()
    valid = None
    if array.null_count:
        valid = array.is_valid().to_numpy(zero_copy_only=False).view(np.uint8)
    if offsets is None or not len(array):
        return valid, np.zeros(1, np.int32), np.zeros(0, np.uint8)
    places = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    return valid, places, np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)


def column(offsets: Any, data: Any, valid: Any = None) -> Any:
    """Return a column of texts; valid: uint8[n], 0 for null."""
    mask = None if valid is None else pa.array(valid.view(np.bool_)).buffers()[1]
    buffers = [mask, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.StringArray.from_buffers(len(offsets) - 1, buffers[1], buffers[2], mask)


def _cased(letters: Callable[[], Any], plain: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def cased(array: Any) -> Any:
        valid, offsets, data = parts(array)
        if not (data[offsets[0] : offsets[-1]] & 0x80).any():
            return plain(array)
        return column(*mapped(valid, offsets, data, letters()), valid)

    return cased


def _plain_cased(letters: Callable[[], Any]) -> Callable[[str], str]:
    def cased(text: str) -> str:
        table = letters()
        return "".join(chr(table[ord(c)]) if ord(c) < len(table) else c for c in text)

    return cased


def _slice(array: Any, offset: int, length: int | None) -> Any:
    if offset >= 0 or length is None:
        stop = None if length is None else offset + length
        return pc.utf8_slice_codeunits(array, offset, stop)
    return pc.utf8_slice_codeunits(pc.utf8_slice_codeunits(array, offset), 0, length)


def _plain_slice(text: str, offset: int, length: int | None) -> str:
    return text[offset:][:length]


def _split(array: Any, separator: str, number: int) -> Any:
    valid, offsets, data = parts(array)
    there, begins, ends = split_part(valid, offsets, data, separator.encode(), number)
    return column(*gathered(begins, ends, data), there)


def _plain_split(text: str, separator: str, number: int) -> str | None:
    found = text.split(separator)
    return found[number] if number < len(found) else None


def _count(array: Any, pattern: str, literal: bool) -> Any:
    if literal:
        return count(*parts(array), pattern.encode())
    return pc.count_substring_regex(array, pattern=pattern).cast(pa.int64())


def _plain_count(text: str, pattern: str, literal: bool) -> int:
    return text.count(pattern) if literal else len(plain_pattern(pattern).findall(text))


def _extract(array: Any, pattern: str, group: int) -> Any:
    return pc.struct_field(pc.extract_regex(array, pattern=only_group(pattern, group)), [0])


def _plain_extract(text: str, pattern: str, group: int) -> str | None:
    found = plain_pattern(pattern).search(text)
    # RE2, as Arrow has it, does not tell a group without a part in the match from an empty one.
    return (found.group(group) or "") if found else None


def _replace(times: int | None) -> Callable[[Any, str, str, bool], Any]:
    def replaced(array: Any, pattern: str, value: str, literal: bool) -> Any:
        if literal:
            return pc.replace_substring(array, pattern, value, max_replacements=times)
        by = replacement(value)
        return pc.replace_substring_regex(array, pattern, by, max_replacements=times)

    return replaced


def _plain_replace(times: int | None) -> Callable[[str, str, str, bool], str]:
    def replaced(text: str, pattern: str, value: str, literal: bool) -> str:
        if literal:
            return text.replace(pattern, value, -1 if times is None else times)
        return plain_pattern(pattern).sub(replacement(value), text, count=times or 0)

    return replaced


def _check_replace(pattern: str, value: str, literal: bool) -> None:
    if not literal:
        check_consuming(pattern)
        groups = groups_of(pattern)
        for number in re.findall(r"\\([0-9])", replacement(value).replace("\\\\", "")):
            if int(number) > groups:
                raise PlanError(
                    f"the replacement has group {number}, and the pattern {pattern!r} has {groups}"
                )


def _check_count(pattern: str, literal: bool) -> None:
    if not literal:
        check_consuming(pattern)


def _numbers(parse: Callable[..., Any], to: Any) -> Callable[[Any, bool], Any]:
    def numbers(array: Any, strict: bool) -> Any:
        valid, offsets, data = parts(array)
        values, failed = parse(valid, offsets, data)
        if strict:
            return values, failed * np.uint8(NO_NUMBER)
        bad = failed.view(np.bool_)
        return pa.array(values, to, mask=bad if valid is None else bad | ~valid.view(np.bool_))

    return numbers


def _plain_number(form: re.Pattern[str], make: type) -> Callable[[str, bool], Any]:
    def number(text: str, strict: bool) -> Any:
        value = make(text) if form.fullmatch(text) else None
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            value = None
        if value is None and strict:
            raise ValueError(FAILURES[NO_NUMBER])
        return value

    return number


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
        columns=lambda array: pc.utf8_length(array).cast(pa.int64()),
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
        lambda text, pattern: plain_pattern(pattern).search(text) is not None,
        columns=pc.match_substring_regex,
        check=check_pattern,
    ),
    Function(
        "str.replace", (_TEXT,), Kind.TEXT, _plain_replace(1), columns=_replace(1),
        check=_check_replace,
    ),
    Function(
        "str.replace_all", (_TEXT,), Kind.TEXT, _plain_replace(None), columns=_replace(None),
        check=_check_replace,
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
        "str.pad_start", (_TEXT,), Kind.TEXT, str.rjust,
        columns=pc.utf8_lpad,
    ),
    Function(
        "str.pad_end", (_TEXT,), Kind.TEXT, str.ljust,
        columns=pc.utf8_rpad,
    ),
    Function(
        "str.concat", (_TEXT, _TEXT), Kind.TEXT, lambda a, b: a + b,
        columns=lambda a, b: pc.binary_join_element_wise(a, b, ""),
    ),
    Function(
        "str.to_integer", (_TEXT,), Kind.INT, _plain_number(_INT, int),
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
)  # fmt: skip
