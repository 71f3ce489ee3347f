"""Methods of bytes, ``col("payload").bin``; the names are Polars'."""

from __future__ import annotations

from dataclasses import dataclass

from ripple.core.arguments import shown
from ripple.core.errors import PlanError
from ripple.model.expression.expr import Expr
from ripple.model.schema.bytes_form import FORMS, BytesText


@dataclass(frozen=True, slots=True)
class BinaryMethods:
    """Functions of bytes; null of null."""

    expr: Expr

    def size(self) -> Expr:
        """Return the number of bytes."""
        return Expr("bin.size", (self.expr,))

    def encode(self, encoding: BytesText) -> Expr:
        """Return the bytes as a text: in ``"base64"``, or ``"hex"``, two digits a byte."""
        if encoding not in FORMS:
            raise PlanError(f"encode: encoding is 'base64' or 'hex', not {shown(encoding)}")
        return Expr("bin.encode", (self.expr,), encoding)
