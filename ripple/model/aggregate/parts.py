"""The parts that states are made of, with one Arrow form each, and states made of parts."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa

from ripple.model.aggregate.contract import Column, Slots, State, Values
from ripple.model.aggregate.errors import StateError
from ripple.model.aggregate.exact import ExactSums
from ripple.model.aggregate.integers import Counts, IntegerSums

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from ripple.model.aggregate.part import Read


class Part(Protocol):
    """A column of accumulators that dumps itself."""

    def resize(self, slots: int) -> None:
        """Set the number of slots; new ones are empty."""

    def merge(self, into: Slots, source: Slots) -> None:
        """Move each source's content to its partner."""

    def clear(self, slots: Slots) -> None:
        """Empty the slots."""

    def dump(self, slots: Slots) -> dict[str, pa.Array]:
        """Return the canonical Arrow columns by suffix."""

    def load(self, slots: Slots, arrays: Mapping[str, pa.Array]) -> None:
        """Replace the slots' content by dumped columns."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory held."""


class PartsState(State):
    """A state that is a few named parts; families define adding and reading."""

    def __init__(self, **parts: Part) -> None:
        self._parts = parts

    def resize(self, slots: int) -> None:
        """Set the number of slots; new ones are empty."""
        for part in self._parts.values():
            part.resize(slots)

    def merge(self, into: Slots, source: Slots) -> None:
        """Move the values of each slot of ``source`` to its partner in ``into``."""
        for part in self._parts.values():
            part.merge(into, source)

    def clear(self, slots: Slots) -> None:
        """Empty the slots."""
        for part in self._parts.values():
            part.clear(slots)

    def dump(self, slots: Slots) -> dict[str, pa.Array]:
        """Return every part's columns, named part_suffix."""
        return {
            f"{name}_{suffix}" if suffix else name: array
            for name, part in self._parts.items()
            for suffix, array in part.dump(slots).items()
        }

    def load(self, slots: Slots, arrays: Mapping[str, pa.Array]) -> None:
        """Replace the slots' values by dumped ones; raises :class:`StateError`."""
        for name, part in self._parts.items():
            own = {
                key.removeprefix(name).removeprefix("_"): array
                for key, array in arrays.items()
                if key == name or key.startswith(f"{name}_")
            }
            try:
                part.load(slots, own)
            except (KeyError, ValueError, TypeError) as error:
                raise StateError(f"the dumped {name} does not fit: {error}") from error

    @property
    def nbytes(self) -> int:
        """Bytes of memory held."""
        return sum(part.nbytes for part in self._parts.values())


class SummedState(PartsState):
    """A state of sums and counts alone, so that compiled callers can fold into it.

    adds: per part, by name, the derivation of its values ("" as they are, "square" or "product")
    and their inputs. States may share parts with equal inputs.
    """

    adds: ClassVar[Mapping[str, tuple[str, tuple[int, ...]]]]

    def add(self, slots: Slots, *values: Values) -> None:
        """Add each value to its slot."""
        self._change("add", slots, values)

    def remove(self, slots: Slots, *values: Values) -> None:
        """Take each value out of its slot."""
        self._change("remove", slots, values)

    def _change(self, call: str, slots: Slots, values: tuple[Values, ...]) -> None:
        for name, (how, inputs) in self.adds.items():
            take = getattr(self._parts[name], f"{call}_{how}" if how else call)
            take(slots, *(values[at] for at in inputs))

    @property
    def parts(self) -> dict[str, Any]:
        """The parts by name; another one of the same kind may be put in the place of each."""
        return self._parts

    @abstractmethod
    def reads(self) -> tuple[Read, ...]:
        """Return the readers of each of ``Bound.results`` from the parts."""

    def results(self, slots: Slots) -> tuple[Column, ...]:
        """Read the results, each rounded once; raises :class:`IntegerRangeError`."""
        return tuple(read.column(slots) for read in self.reads())


class FloatSums(ExactSums):
    """Exact float sums, dumped as integer digits times a power of two, and counted specials."""

    def dump(self, slots: Slots) -> dict[str, pa.Array]:
        """Return exponent, digits (signed, little-endian, odd), nan, inf and minus_inf."""
        exponents, offsets, digits, specials = self.encode(slots)
        return {
            "exponent": pa.array(exponents),
            "digits": pa.Array.from_buffers(
                pa.large_binary(), len(slots), [None, pa.py_buffer(offsets), pa.py_buffer(digits)]
            ),
            "nan": pa.array(specials[0]),
            "inf": pa.array(specials[1]),
            "minus_inf": pa.array(specials[2]),
        }

    def load(self, slots: Slots, arrays: Mapping[str, pa.Array]) -> None:
        """Replace the slots' sums by dumped ones."""
        digits = arrays["digits"].cast(pa.large_binary())
        _, offsets, data = digits.buffers()
        self.decode(
            slots,
            numpy_of(arrays["exponent"], np.int32),
            np.frombuffer(offsets, np.int64, len(digits) + 1, digits.offset * 8),
            np.frombuffer(data or b"", np.uint8),
            np.stack([numpy_of(arrays[key], np.int64) for key in ("nan", "inf", "minus_inf")]),
        )


class WholeSums(IntegerSums):
    """Exact integer sums, dumped as 128-bit decimals."""

    TYPE = pa.decimal128(38)

    def dump(self, slots: Slots) -> dict[str, pa.Array]:
        """Return one decimal column."""
        data = pa.py_buffer(self.encode(slots))
        return {"": pa.Array.from_buffers(self.TYPE, len(slots), [None, data])}

    def load(self, slots: Slots, arrays: Mapping[str, pa.Array]) -> None:
        """Replace the slots' sums by dumped ones."""
        array = arrays[""].cast(self.TYPE)
        data = array.buffers()[1]
        self.decode(slots, np.frombuffer(data, np.uint8, 16 * len(array), 16 * array.offset))


class Tally(Counts):
    """Counts, dumped as int64."""

    def dump(self, slots: Slots) -> dict[str, pa.Array]:
        """Return one int64 column."""
        return {"": pa.array(self.result(slots))}

    def load(self, slots: Slots, arrays: Mapping[str, pa.Array]) -> None:
        """Replace the slots' counts by dumped ones."""
        self.decode(slots, numpy_of(arrays[""], np.int64))


def numpy_of(array: pa.Array, dtype: type[Any]) -> npt.NDArray[Any]:
    """Return a null-free Arrow array as a contiguous NumPy one; raises ``ValueError``."""
    if array.null_count:
        raise ValueError(f"{array.null_count} nulls where none may be")
    values = array.to_numpy(zero_copy_only=False)
    if values.dtype != dtype:
        raise ValueError(f"{values.dtype} where {np.dtype(dtype)} should be")
    return np.ascontiguousarray(values)


def sums_of(*, integer: bool) -> FloatSums | WholeSums:
    """Return the exact sums for a column of integers or of floats."""
    return WholeSums() if integer else FloatSums()


def listed(values: Values) -> list[Any]:
    """Return a column as Python objects."""
    if isinstance(values, list):
        return values
    found: list[Any] = values.to_pylist() if isinstance(values, pa.Array) else values.tolist()
    return found
