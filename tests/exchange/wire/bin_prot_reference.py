"""bin_prot once more, as slowly and plainly as it can be said, from a schema's types."""

from __future__ import annotations

import struct
from typing import Any

from ripple.model.schema import types


def write_int(n: int) -> bytes:
    if 0 <= n < 128:
        return bytes([n])
    if -128 <= n < 0:
        return b"\xff" + struct.pack("<b", n)
    for code, form in ((b"\xfe", "<h"), (b"\xfd", "<i"), (b"\xfc", "<q")):
        try:
            return code + struct.pack(form, n)
        except struct.error:
            continue
    raise AssertionError(n)


def write_length(n: int) -> bytes:
    if n < 128:
        return bytes([n])
    return b"\xfe" + struct.pack("<H", n) if n < 65536 else b"\xfd" + struct.pack("<I", n)


def write_text(raw: bytes) -> bytes:
    return write_length(len(raw)) + raw


def write_sexp(value: Any) -> bytes:
    if isinstance(value, str):
        return b"\0" + write_text(value.encode())
    return b"\1" + write_length(len(value)) + b"".join(map(write_sexp, value))


def write(kind: types.FieldType, value: Any) -> bytes:
    match kind:
        case types.String():
            return write_text(value.encode())
        case types.Int() | types.Int64():
            return write_int(value)
        case types.Float():
            return struct.pack("<d", value)
        case types.Bool():
            return b"\1" if value else b"\0"
        case types.Opaque():
            return write_sexp(value)
        case types.Option(of):
            return b"\0" if value is None else b"\1" + write(of, value)
        case types.List(of):
            return write_length(len(value)) + b"".join(write(of, item) for item in value)
        case types.Record(fields):
            return write_fields(fields, value)
        case types.Variant(cases):
            names = [case.name for case in cases]
            tag = names.index(value[0])
            args = zip(cases[tag].args, value[1:], strict=True)
            return bytes([tag]) + b"".join(write(of, arg) for of, arg in args)
        case _:
            raise AssertionError(kind)


def write_fields(fields: tuple[types.Field, ...], value: dict[str, Any]) -> bytes:
    out = b""
    for field in fields:
        if not field.optional:
            out += write(field.type, value[field.name])
        elif field.name in value:
            out += b"\1" + write(field.type, value[field.name])
        else:
            out += b"\0"
    return out


class MalformedError(Exception):
    """The bytes end too early, or are not an encoding."""


class Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise MalformedError
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, forms: dict[int, str]) -> int:
        (code,) = self.take(1)
        if code < 128:
            return code
        if code not in forms:
            raise MalformedError
        (n,) = struct.unpack(forms[code], self.take(struct.calcsize(forms[code])))
        if code == 0xFF and n >= 0:
            raise MalformedError
        return n

    def integer(self) -> int:
        return self.number({0xFF: "<b", 0xFE: "<h", 0xFD: "<i", 0xFC: "<q"})

    def length(self, size_min: int) -> int:
        n = self.number({0xFE: "<H", 0xFD: "<I", 0xFC: "<Q"})
        if n * size_min > len(self.data) - self.at:
            raise MalformedError
        return n

    def flag(self) -> bool:
        (flag,) = self.take(1)
        if flag > 1:
            raise MalformedError
        return flag == 1

    def text(self) -> str:
        raw = self.take(self.length(1))
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise MalformedError from None

    def sexp(self) -> Any:
        if not self.flag():
            return self.take(self.length(1)).decode("utf-8", "surrogateescape")
        return [self.sexp() for _ in range(self.length(2))]

    def value(self, kind: types.FieldType) -> Any:  # noqa: C901, PLR0912 (one case a type)
        match kind:
            case types.String():
                return self.text()
            case types.Int():
                n = self.integer()
                if not -(2**62) <= n < 2**62:
                    raise MalformedError
                return n
            case types.Int64():
                return self.integer()
            case types.Float():
                return struct.unpack("<d", self.take(8))[0]
            case types.Bool():
                return self.flag()
            case types.Opaque():
                return self.sexp()
            case types.Option(of):
                return self.value(of) if self.flag() else None
            case types.List(of):
                return [self.value(of) for _ in range(self.length(size_min(of)))]
            case types.Record(fields):
                return self.fields(fields)
            case types.Variant(cases):
                (tag,) = self.take(1)
                if tag >= len(cases):
                    raise MalformedError
                return (cases[tag].name, *(self.value(of) for of in cases[tag].args))
            case _:
                raise AssertionError(kind)

    def fields(self, fields: tuple[types.Field, ...]) -> dict[str, Any]:
        value = {}
        for field in fields:
            if not field.optional or self.flag():
                value[field.name] = self.value(field.type)
        return value


def size_min(kind: types.FieldType) -> int:
    match kind:
        case types.Float():
            return 8
        case types.Opaque():
            return 2
        case types.Record(fields):
            return sum(1 if field.optional else size_min(field.type) for field in fields)
        case _:
            return 1


def read_record(fields: tuple[types.Field, ...], data: bytes) -> dict[str, Any]:
    reader = Reader(data)
    value = reader.fields(fields)
    if reader.at != len(data):
        raise MalformedError
    return value
