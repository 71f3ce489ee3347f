"""Methods of texts, ``col("name").str``; the names are Polars'."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ripple.core.arguments import need_bool, need_text, need_whole, shown
from ripple.core.errors import PlanError
from ripple.model.expression.expr import Expr, Scalar, lit
from ripple.model.schema.bytes_form import FORMS, BytesText

WHITESPACE = " \t\n\v\f\r"
CHARS_MAX = 1 << 20  # the largest number of a part, place or group
PAD_MAX = 4_096  # characters of a padded text: a batch of 65,536 has 1 GiB then, Arrow's most is 2


@dataclass(frozen=True, slots=True)
class TextMethods:
    r"""Functions of a text; null of null.

    Places and lengths count characters, which are Unicode's code points. Patterns are RE2's: their
    time is linear in the text, without backreferences; ``\d``, ``\w``, ``\s`` and ``\b`` are
    about ASCII. A pattern that is none raises PlanError when the pipeline is made.
    """

    expr: Expr

    def to_lowercase(self) -> Expr:
        """Return the text in small letters, by Unicode 14.0; each letter becomes one letter."""
        return self._of("to_lowercase")

    def to_uppercase(self) -> Expr:
        """Return the text in capitals, by Unicode 14.0; each letter becomes one letter."""
        return self._of("to_uppercase")

    def len_chars(self) -> Expr:
        """Return the number of characters."""
        return self._of("len_chars")

    def slice(self, offset: int, length: int | None = None) -> Expr:
        """Return up to ``length`` characters from ``offset`` on, from the end if it is negative."""
        need_whole("offset", offset, -CHARS_MAX, most=CHARS_MAX)
        if length is not None:
            need_whole("length", length, 0, most=CHARS_MAX)
        return self._of("slice", offset, length)

    def decode(self, encoding: BytesText, *, strict: bool = True) -> Expr:
        """Return the bytes of a text in ``"base64"``, with its padding, or ``"hex"``.

        A text of another form fails its row; without ``strict`` it gives null.
        """
        if encoding not in FORMS:
            raise PlanError(f"decode: encoding is 'base64' or 'hex', not {shown(encoding)}")
        need_bool("strict", strict)
        return self._of("decode", encoding, strict)

    def split(self, by: str) -> Parts:
        """Return the parts between each ``by``; ``.list.get(n)`` takes one."""
        need_text("the separator of .str.split", by)
        return Parts(self.expr, by)

    def extract(self, pattern: str, group_index: int = 1) -> Expr:
        """Return a group of the first match, 0 for the whole match; null without a match.

        A group that has no part in the match gives an empty text.
        """
        need_text("the pattern of .str.extract", pattern)
        need_whole("group_index", group_index, 0, most=CHARS_MAX)
        return self._of("extract", pattern, group_index)

    def contains(self, pattern: str, *, literal: bool = False) -> Expr:
        """Return whether a pattern matches somewhere, or with ``literal`` a text is there."""
        if self._is_literal("contains", pattern, literal):
            return self.expr.contains(pattern)
        return self._of("contains", pattern)

    def starts_with(self, prefix: str) -> Expr:
        """Return whether the text begins with ``prefix``."""
        return self.expr.starts_with(prefix)

    def ends_with(self, suffix: str) -> Expr:
        """Return whether the text ends with ``suffix``."""
        return self.expr.ends_with(suffix)

    def replace(self, pattern: str, value: str, *, literal: bool = False) -> Expr:
        """Replace the first match of a pattern; ``$1`` in ``value`` is its first group."""
        return self._replaced(pattern, value, literal, 1)

    def replace_all(self, pattern: str, value: str, *, literal: bool = False) -> Expr:
        """Replace each match of a pattern; ``$1`` in ``value`` is its first group."""
        return self._replaced(pattern, value, literal, None)

    def count_matches(self, pattern: str, *, literal: bool = False) -> Expr:
        """Return how often a pattern matches, one match beginning behind the other."""
        is_literal = self._is_literal("count_matches", pattern, literal)
        return self._of("count_matches", pattern, is_literal)

    def json_path_match(self, json_path: str, *, strict: bool = True) -> Expr:
        """Return the value at a path in a text of JSON; null if it is missing, or is null.

        A string gives its text, any other value its source text: end it with ``.cast`` for a
        number. json_path: names and indexes, as in ``$.user.names[0]`` or ``$["a b"]``. Of
        two members of one name the last counts. A text that is not JSON, or has over 64 levels,
        fails its row; without ``strict`` it gives null.
        """
        need_text("the path of .str.json_path_match", json_path)
        need_bool("strict", strict)
        options = (json_path,) if strict else (json_path, strict)
        return self._of("json_path_match", *options)

    def strip_chars(self, characters: str = WHITESPACE) -> Expr:
        """Return the text without these characters at both ends, by default ASCII's whitespace."""
        return self._stripped("strip_chars", characters)

    def strip_chars_start(self, characters: str = WHITESPACE) -> Expr:
        """Return the text without these characters at its begin."""
        return self._stripped("strip_chars_start", characters)

    def strip_chars_end(self, characters: str = WHITESPACE) -> Expr:
        """Return the text without these characters at its end."""
        return self._stripped("strip_chars_end", characters)

    def pad_start(self, length: int, fill_char: str = " ") -> Expr:
        """Put ``fill_char`` in front as often as ``length`` characters need."""
        return self._padded("pad_start", length, fill_char)

    def pad_end(self, length: int, fill_char: str = " ") -> Expr:
        """Put ``fill_char`` behind as often as ``length`` characters need."""
        return self._padded("pad_end", length, fill_char)

    def _of(self, name: str, *options: Scalar) -> Expr:
        return Expr(f"str.{name}", (self.expr, *map(lit, options)))

    def _replaced(self, pattern: str, value: str, literal: bool, times: int | None) -> Expr:
        name = "replace" if times else "replace_all"
        is_literal = self._is_literal(name, pattern, literal)
        if not isinstance(value, str):
            raise PlanError(f"the value of .str.{name} must be a text, not {shown(value)}")
        return self._of(name, pattern, value, is_literal)

    def _stripped(self, name: str, characters: str) -> Expr:
        need_text(f"the characters of .str.{name}", characters)
        return self._of(name, characters)

    def _padded(self, name: str, length: int, fill_char: str) -> Expr:
        need_whole(f"the length of .str.{name}", length, 0, most=PAD_MAX)
        need_text("fill_char", fill_char)
        if len(fill_char) != 1:
            raise PlanError(f"fill_char must be one character, not {shown(fill_char)}")
        return self._of(name, length, fill_char)

    def _is_literal(self, name: str, pattern: str, literal: bool) -> bool:
        need_text(f"the pattern of .str.{name}", pattern)
        need_bool("literal", literal)
        return literal

    if not TYPE_CHECKING:  # to a type checker, a name that is not above is a mistake

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError, with the method for the name of another library."""
            from ripple.model.other_names import no_attribute  # noqa: PLC0415 - only on errors

            raise no_attribute(self, name, "text")


@dataclass(frozen=True, slots=True)
class Parts:
    """``col("url").str.split("/")``, waiting for ``.list.get(n)``."""

    expr: Expr
    by: str

    instead: ClassVar[str] = 'take one of the parts, as in .str.split("/").list.get(0)'

    @property
    def list(self) -> PartMethods:
        """Return the methods of a list of parts."""
        return PartMethods(self)

    def __repr__(self) -> str:
        return f"{self.expr!r}.str.split({self.by!r})"

    if not TYPE_CHECKING:  # as above

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError, with the way to take a part."""
            raise AttributeError(f"{self!r} has no attribute {name!r}: {self.instead}")

        def __getitem__(self, index: object) -> Any:
            raise PlanError(f"{self!r} is no list: {self.instead}")


@dataclass(frozen=True, slots=True)
class PartMethods:
    """``col("url").str.split("/").list``."""

    parts: Parts

    def get(self, index: int) -> Expr:
        """Return the part of that number, counted from 0; null where there are not as many."""
        need_whole("index", index, 0, most=CHARS_MAX)
        return Expr("str.split.list.get", (self.parts.expr, lit(self.parts.by), lit(index)))

    if not TYPE_CHECKING:  # as above

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError, with the way to take a part."""
            raise AttributeError(f"{self.parts!r}.list has only get(n), not {name!r}")
