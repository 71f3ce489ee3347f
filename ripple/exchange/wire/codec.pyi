from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import Any, Generic, TypeVar

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
E = TypeVar("E", bound=Enum)

Buffer = bytes | bytearray | memoryview

DEPTH_MAX: int
INT_MAX: int
INT_MIN: int

class Codec(Generic[T]):
    @property
    def name(self) -> str: ...
    @property
    def size_min(self) -> int: ...
    def dumps(self, value: T) -> bytes: ...
    def loads(self, data: Buffer) -> T: ...
    def read(self, data: Buffer, offset: int = 0) -> tuple[T, int]: ...

class Later(Codec[T]):
    def define(self, of: Codec[T]) -> None: ...

INT: Codec[int]
INT64: Codec[int]
FLOAT: Codec[float]
BOOL: Codec[bool]
STRING: Codec[str]
BYTES: Codec[Buffer]
UNIT: Codec[None]
SEXP: Codec[Any]

def option(of: Codec[T]) -> Codec[T | None]: ...
def list_of(of: Codec[T]) -> Codec[list[T]]: ...
def tuple_of(of: Codec[T]) -> Codec[tuple[T, ...]]: ...
def tuple_as(*of: Codec[Any]) -> Codec[tuple[Any, ...]]: ...
def pair(a: Codec[A], b: Codec[B]) -> Codec[tuple[A, B]]: ...
def record(
    cls: type[T],
    fields: Mapping[str, Codec[Any]],
    optional: Collection[str] = (),
    make: Callable[..., T] | None = None,
) -> Codec[T]: ...
def union(*cases: Codec[Any]) -> Codec[Any]: ...
def variant(
    cases: Mapping[str, tuple[Codec[Any], ...]],
    case_of: Callable[[Any], tuple[str, tuple[Any, ...]]] | None = None,
) -> Codec[Any]: ...
def enumeration(cls: type[E]) -> Codec[E]: ...
def later(name: str, depth_max: int = ...) -> Later[Any]: ...
