"""Lists as sources of text write them: arrays of JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.core.frozen import frozen
from ripple.model.schema.arrow import to_arrow
from ripple.model.schema.columns import FLOAT_WHOLE_MAX
from ripple.model.schema.logical.fields import stored_type
from ripple.model.schema.logical.lists import word_of_list
from ripple.model.schema.types import DECIMALS, Field, Float, Int64, List, Schema, String
from ripple.model.schema.values import Misfit, converter

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.model.schema.checks import Form

    Mask = npt.NDArray[np.bool_]

_NAME = "ripple.list"
_FEW = 16  # rows that are read one by one, where one of them is not sound
_NUMBER = r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?"
_BLANK = r"[ \t\r\n]*"
_NUMBERS = rf"^{_BLANK}\[{_BLANK}{_NUMBER}({_BLANK},{_BLANK}{_NUMBER})*{_BLANK}\]{_BLANK}$"


@frozen
class ListForm:
    """The texts of a list: an array of JSON, with items of its type and none of them null.

    item: the form of items of a logical type, and of times.
    """

    kind: List
    item: Form | None = None

    is_text = True
    is_other_unit = False
    clocks = None

    @property
    def words(self) -> str:
        """The reason for a value that is no such list, after "the field"."""
        words = f"is not {word_of_list(self.kind)}"
        if self.item is None:
            return words
        of_item = self.item.words if self.item.is_text else f"is no integer, or {self.item.words}"
        return f"{words}: an item {of_item}"

    @property
    def arrow(self) -> pa.DataType:
        """The type of the column."""
        return to_arrow(Schema("row", (Field("list", stored_type(self.kind)),))).field(0).type

    def parsed(self, column: pa.Array) -> tuple[pa.Array, Mask]:
        """Return a column of strings as lists, and where it is none of the type.

        It is null there, and where the column is.
        """
        import pyarrow.compute as pc  # noqa: PLC0415 - slow to import, and few have lists

        if self.item is not None:
            return self._of_items(*self._written(column))
        # Without these, a text that is more than one value makes another number of rows, or fails.
        odd = pc.fill_null(pc.match_substring_regex(column, rf"\\|\n|{_NAME}"), False)
        if not pc.any(odd).as_py():
            return self._halved(column)
        is_odd = np.asarray(odd)
        lists, failed = self._halved(pc.if_else(odd, None, column))
        own, failed[is_odd] = self._one_by_one(column.filter(odd))
        return _with_rows(lists, is_odd, own), failed

    def _written(self, column: pa.Array) -> tuple[pa.Array, Mask]:
        """Return the lists with their items as the source writes these: texts, or integers."""
        import pyarrow.compute as pc  # noqa: PLC0415 - slow to import, and few have lists

        assert self.item is not None
        form = ListForm(List(String() if self.item.is_text else Int64()))
        if not isinstance(self.kind.of, DECIMALS):
            return form.parsed(column)
        # Numbers of JSON become texts, digit by digit.
        quoted = pc.replace_substring_regex(column, r"[^\[\], \t\r\n]+", r'"\0"')
        texts = pc.if_else(pc.match_substring_regex(column, _NUMBERS), quoted, column)
        lists, failed = form.parsed(texts)
        if not failed.any():
            return lists, failed
        was_failed, own = failed.copy(), []
        for text in column.filter(pa.array(failed)).to_pylist():
            try:
                read = json.loads(text, parse_int=_Digits, parse_float=_Digits)
                own.append(converter(form.kind)(read))
            except (ValueError, RecursionError, Misfit):
                own.append(None)
        failed[was_failed] = [one is None for one in own]
        return _with_rows(lists, was_failed, pa.array(own, form.arrow)), failed

    def _of_items(self, lists: pa.Array, failed: Mask) -> tuple[pa.Array, Mask]:
        """Return lists as stored, from lists of items as the source writes them."""
        assert self.item is not None
        null = np.asarray(lists.is_null())
        lengths = np.where(null, 0, np.diff(np.asarray(lists.offsets)))
        items, misfits = self.item.parsed(lists.flatten())
        if misfits.any():
            rows = np.repeat(np.arange(len(lists)), lengths)
            bad = np.zeros(len(lists), np.bool_)
            bad[rows[misfits]] = True
            items = items.filter(pa.array(~bad[rows]))
            lengths, null, failed = np.where(bad, 0, lengths), null | bad, failed | bad
        ends = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
        mask = pa.array(null) if null.any() else None
        return pa.ListArray.from_arrays(ends, items, type=self.arrow, mask=mask), failed

    def _halved(self, column: pa.Array) -> tuple[pa.Array, Mask]:
        """Return lists as ``parsed`` does, at once where all are sound: most halves are."""
        found = self._at_once(column)
        if found is not None:
            return found, np.zeros(len(column), np.bool_)
        if len(column) <= _FEW:
            return self._one_by_one(column)
        middle = len(column) // 2
        lists, failed = zip(
            self._halved(column.slice(0, middle)), self._halved(column.slice(middle)), strict=True
        )
        return pa.concat_arrays(lists), np.concatenate(failed)

    def _one_by_one(self, column: pa.Array) -> tuple[pa.Array, Mask]:
        read, lists, failed = converter(self.kind), [], np.zeros(len(column), np.bool_)
        for row, text in enumerate(column.to_pylist()):
            try:
                lists.append(None if text is None else read(json.loads(text)))
            except (ValueError, RecursionError, Misfit):
                lists.append(None)
                failed[row] = True
        return pa.array(lists, self.arrow), failed

    def _at_once(self, column: pa.Array) -> pa.Array | None:
        """Return Arrow's lists of texts, without the cases that ``parsed`` handles.

        None where it would not read them as we do.
        """
        import pyarrow.compute as pc  # noqa: PLC0415 - slow to import, and few have lists
        import pyarrow.json as reader  # noqa: PLC0415 - likewise

        if not len(column):
            return pa.array([], self.arrow)
        texts = pc.binary_join_element_wise(
            f'{{"{_NAME}":', pc.fill_null(column, "null"), "}", "\n"
        )
        lines = pc.binary_join(pa.ListArray.from_arrays([0, len(texts)], texts), "")[0]
        options = reader.ParseOptions(
            pa.schema([pa.field(_NAME, self.arrow)]), unexpected_field_behavior="error"
        )
        size = reader.ReadOptions(use_threads=False, block_size=len(lines.as_buffer()) + 1)
        try:
            read = reader.read_json(pa.BufferReader(lines.as_buffer()), size, options)
        except pa.ArrowInvalid:
            return None
        (found,) = read.column(0).chunks or [pa.array([], self.arrow)]
        items = found.flatten()
        if len(found) != len(column) or found.null_count != column.null_count or items.null_count:
            return None
        if isinstance(self.kind.of, Float) and _has_whole(items):
            return None
        return found.cast(self.arrow)


class _Digits(str):
    """A number of JSON, as it is written."""

    __slots__ = ()


def _with_rows(column: pa.Array, where: Mask, rows: pa.Array) -> pa.Array:
    """Return a column with other values in some rows."""
    places = np.arange(len(column))
    places[where] = len(column) + np.arange(len(rows))
    return pa.concat_arrays([column, rows]).take(pa.array(places))


def _has_whole(items: pa.Array) -> Any:
    """Tell whether a float may be a rounded integer."""
    return (np.abs(np.asarray(items)) >= FLOAT_WHOLE_MAX).any()
