"""Key spaces of columns: text, integers, or several of them together.

A key space maps key columns to slots and back, and frees values that no slot uses any more. A key
of several fields is a pair of a shorter key and its last field, so every level is one hash index.
Three or more numbers are one key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from ripple.core.frozen import frozen
from ripple.core.hashing import mix_each
from ripple.model.keys.index import KeyIndex
from ripple.model.schema.exported import Lent
from ripple.model.schema.types import KEY_TYPES, TEXTS, Bool, Field

if TYPE_CHECKING:
    import numpy.typing as npt

    Slots = npt.NDArray[np.int64]
    Hashes = npt.NDArray[np.uint64]

HASH_SEED = np.uint64(0x27D4EB2F165667C5)


@frozen
class Picked:
    """Some rows of a text column, which is not copied for it."""

    text: pa.Array | Lent
    rows: Slots

    def __len__(self) -> int:
        return len(self.rows)


# A field of keys, without nulls.
KeyColumn: TypeAlias = "pa.Array | Picked | Lent"


class KeySpace(Protocol):
    """Keys of one shape and the slots that stand for them."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """The parts of a key."""

    @property
    def index(self) -> KeyIndex:
        """The hash index with a slot for each whole key."""

    @property
    def capacity(self) -> int:
        """Every slot is below it."""

    def slots(self, columns: Sequence[KeyColumn]) -> Slots:
        """Return the slot of each key (one Arrow array per field, no nulls), adding new ones."""

    def known(self, columns: Sequence[KeyColumn]) -> Slots:
        """Return the slot of each key, -1 for a missing one; nothing changes."""

    def arrays(self, slots: Slots) -> list[pa.Array]:
        """Return the keys of ``slots``, one Arrow array per field."""

    def hashes(self, slots: Slots) -> Hashes:
        """Return a hash of each key that depends on the key alone."""

    def adopt(self, slots: Slots) -> None:
        """Hold the key values of new slots; to be called with every result of ``slots``."""

    def release(self, slots: Slots) -> None:
        """Free live, distinct slots."""

    def trim(self) -> None:
        """Give the memory back if there are no keys."""


class TextKeys:
    """Keys of one text field."""

    def __init__(self, field: Field) -> None:
        self.fields: tuple[Field, ...] = (field,)
        self.index = KeyIndex()

    @property
    def capacity(self) -> int:
        """Every slot is below it."""
        return self.index.capacity

    def slots(self, columns: Sequence[KeyColumn]) -> Slots:
        """Return the slot of each key, adding new ones."""
        column = columns[0]
        if isinstance(column, Picked):
            return self.index.slots_of_texts(_texts(column.text), column.rows)
        return self.index.slots_of_texts(_texts(column))

    def known(self, columns: Sequence[KeyColumn]) -> Slots:
        """Return the slot of each key, -1 for a missing one."""
        column = columns[0]
        if isinstance(column, Picked):
            return self.index.slots_of_known_texts(_texts(column.text), column.rows)
        return self.index.slots_of_known_texts(_texts(column))

    def arrays(self, slots: Slots) -> list[pa.Array]:
        """Return the keys of ``slots``."""
        offsets, data = self.index.bytes_at(slots)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        return [pa.Array.from_buffers(pa.string(), len(slots), buffers)]

    def hashes(self, slots: Slots) -> Hashes:
        """Return the XXH64 of each key's UTF-8."""
        return self.index.hashes_at(slots)

    def adopt(self, slots: Slots) -> None:
        """Nothing: a text key is made of nothing else."""

    def release(self, slots: Slots) -> None:
        """Free live, distinct slots."""
        self.index.free(slots)

    def trim(self) -> None:
        """Give the memory back if there are no keys."""
        self.index.trim()


class IntKeys:
    """Keys of one integer or boolean field."""

    def __init__(self, field: Field) -> None:
        self.fields: tuple[Field, ...] = (field,)
        self.index = KeyIndex()

    @property
    def capacity(self) -> int:
        """Every slot is below it."""
        return self.index.capacity

    def slots(self, columns: Sequence[KeyColumn]) -> Slots:
        """Return the slot of each key, adding new ones."""
        return self.index.slots_of_ints(_ints(columns[0]))

    def known(self, columns: Sequence[KeyColumn]) -> Slots:
        """Return the slot of each key, -1 for a missing one."""
        return self.index.slots_of_known_pairs(
            _ints(columns[0]), np.zeros(len(columns[0]), np.int64)
        )

    def arrays(self, slots: Slots) -> list[pa.Array]:
        """Return the keys of ``slots``."""
        return [_int_array(self.fields[0], self.index.pairs_at(slots)[0])]

    def hashes(self, slots: Slots) -> Hashes:
        """Return a mix of each key's 64 bits."""
        return _mixed(np.full(len(slots), HASH_SEED), self.index.pairs_at(slots)[0])

    def adopt(self, slots: Slots) -> None:
        """Nothing: an integer key is made of nothing else."""

    def release(self, slots: Slots) -> None:
        """Free live, distinct slots."""
        self.index.free(slots)

    def trim(self) -> None:
        """Give the memory back if there are no keys."""
        self.index.trim()


class NumberKeys:
    """Keys of three or more integer and boolean fields, in one index, with the hashes of pairs."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self.fields = tuple(fields)
        self.index = KeyIndex()

    @property
    def capacity(self) -> int:
        """Every slot is below it."""
        return self.index.capacity

    def slots(self, columns: Sequence[KeyColumn]) -> Slots:
        """Return the slot of each key, adding new ones."""
        return self.index.slots_of_words(_words(columns))

    def known(self, columns: Sequence[KeyColumn]) -> Slots:
        """Return the slot of each key, -1 for a missing one."""
        return self.index.slots_of_known_words(_words(columns))

    def arrays(self, slots: Slots) -> list[pa.Array]:
        """Return the keys of ``slots``, one Arrow array per field."""
        words = self.index.words_at(slots, len(self.fields))
        return [_int_array(*one) for one in zip(self.fields, words, strict=True)]

    def hashes(self, slots: Slots) -> Hashes:
        """Return a mix of each key's numbers."""
        hashes = np.full(len(slots), HASH_SEED)
        for one in self.index.words_at(slots, len(self.fields)):
            hashes = _mixed(hashes, one)
        return hashes

    def adopt(self, slots: Slots) -> None:
        """Nothing: numbers are made of nothing else."""

    def release(self, slots: Slots) -> None:
        """Free live, distinct slots."""
        self.index.free(slots)

    def trim(self) -> None:
        """Give the memory back if there are no keys."""
        self.index.trim()


class PairKeys:
    """Keys of two or more fields: ``left``'s key and one more field.

    Invariant: ``_parts`` are the spaces of the slots in a pair, with their index there.
    """

    def __init__(self, left: KeySpace, field: Field) -> None:
        self.left = left
        self.right = TextKeys(field) if isinstance(field.type, TEXTS) else None
        self.fields = (*left.fields, field)
        self.index = KeyIndex()
        self._parts: list[tuple[int, KeySpace]] = [(0, left)]
        if self.right:
            self._parts.append((1, self.right))

    @property
    def capacity(self) -> int:
        """Every slot is below it."""
        return self.index.capacity

    def slots(self, columns: Sequence[KeyColumn]) -> Slots:
        """Return the slot of each key, adding new ones."""
        left = self.left.slots(columns[:-1])
        right = self.right.slots(columns[-1:]) if self.right else _ints(columns[-1])
        self.left.adopt(left)
        return self.index.slots_of_pairs(left, right)

    def known(self, columns: Sequence[KeyColumn]) -> Slots:
        """Return the slot of each key, -1 for a missing one."""
        left = self.left.known(columns[:-1])
        right = self.right.known(columns[-1:]) if self.right else _ints(columns[-1])
        # A left key that is not there has no slot, and none has the number -1.
        return self.index.slots_of_known_pairs(left, right)

    def slots_of(self, left: Slots, right: Slots) -> Slots:
        """Return the slot of each pair of a left slot and an integer, adding new ones."""
        return self.index.slots_of_pairs(left, right)

    def arrays(self, slots: Slots) -> list[pa.Array]:
        """Return the keys of ``slots``, one Arrow array per field."""
        left, right = self.index.pairs_at(slots)
        if self.right:
            return [*self.left.arrays(left), *self.right.arrays(right)]
        return [*self.left.arrays(left), _int_array(self.fields[-1], right)]

    def hashes(self, slots: Slots) -> Hashes:
        """Return a mix of the left key's hash and the last field's."""
        left, right = self.index.pairs_at(slots)
        last = self.right.hashes(right) if self.right else right
        return _mixed(self.left.hashes(left), last)

    def adopt(self, slots: Slots) -> None:
        """Hold the parts of new slots."""
        new = self.index.adopt(slots)
        if len(new):
            for part, used in self._uses(new):
                part.index.retain(used)

    def release(self, slots: Slots) -> None:
        """Free live, distinct slots, and the parts that nothing else uses."""
        uses = self._uses(slots)
        self.index.free(slots)
        for part, used in uses:
            _release_uses(part, used)

    def trim(self) -> None:
        """Give the memory back if there are no keys."""
        self.index.trim()
        for _, part in self._parts:
            part.trim()

    def _uses(self, slots: Slots) -> list[tuple[KeySpace, Slots]]:
        pairs = self.index.pairs_at(slots)
        return [(part, pairs[at]) for at, part in self._parts]


class SlotKeys(PairKeys):
    """Keys of pairs: a slot in a space that others fill, of ``left``, and one more field.

    Invariant, which the user keeps: such a slot is live as long as a pair has it. A key is given by
    these slots and the further fields.
    """

    def __init__(self, left: KeySpace, field: Field) -> None:
        super().__init__(left, field)
        self._parts = self._parts[1:]

    def slots(self, columns: Sequence[Any]) -> Slots:
        """Return the slot of each pair of a slot and a value of the last field."""
        left, last = columns
        right = self.right.slots([last]) if self.right else _ints(last)
        return self.index.slots_of_pairs(left, right)


class UnitKeys:
    """The key space of a total: one slot, no fields."""

    def __init__(self) -> None:
        self.fields: tuple[Field, ...] = ()
        self.index = KeyIndex()

    @property
    def capacity(self) -> int:
        """Every slot is below it."""
        return self.index.capacity

    def slots(self, columns: Sequence[KeyColumn]) -> Slots:
        """Return slot 0 for every row; the number of rows is that of ``columns[0]``."""
        if len(columns[0]):
            self.index.add(b"")
        return np.zeros(len(columns[0]), np.int64)

    def known(self, columns: Sequence[KeyColumn]) -> Slots:
        """Return slot 0 for every row, -1 where there is none yet."""
        return np.full(len(columns[0]), 0 if len(self.index) else -1)

    def arrays(self, slots: Slots) -> list[pa.Array]:
        """Return no arrays: the key has no fields."""
        del slots
        return []

    def hashes(self, slots: Slots) -> Hashes:
        """Return the same hash for every row."""
        return np.full(len(slots), HASH_SEED)

    def adopt(self, slots: Slots) -> None:
        """Nothing: the one key is made of nothing."""

    def release(self, slots: Slots) -> None:
        """Free the slot."""
        self.index.free(slots)

    def trim(self) -> None:
        """Give the memory back if there are no keys."""
        self.index.trim()


def key_space(fields: Sequence[Field]) -> KeySpace:
    """Return an empty key space for keys of these fields: text, integers or booleans."""
    if len(fields) > 2 and not any(isinstance(field.type, TEXTS) for field in fields):
        assert all(isinstance(field.type, KEY_TYPES) for field in fields), fields
        return NumberKeys(fields)
    return paired_space(fields)


def paired_space(fields: Sequence[Field]) -> KeySpace:
    """Return the same with an index for each number of fields, for readers level by level."""
    space: KeySpace = UnitKeys()
    for field in fields:
        assert isinstance(field.type, KEY_TYPES), field
        if isinstance(space, UnitKeys):
            space = TextKeys(field) if isinstance(field.type, TEXTS) else IntKeys(field)
        else:
            space = PairKeys(space, field)
    return space


def slot_keys(left: KeySpace, fields: Sequence[Field]) -> KeySpace:
    """Return a space of keys that are slots of ``left`` and the values of further fields."""
    space: KeySpace = SlotKeys(left, fields[0])
    for field in fields[1:]:
        space = PairKeys(space, field)
    return space


def key_columns(keys: KeySpace, slots: Slots) -> dict[str, pa.Array]:
    """Return the keys of ``slots``, one Arrow array per field, by its name."""
    arrays = zip(keys.fields, keys.arrays(slots), strict=True)
    return {field.name: array for field, array in arrays}


def slots_of_same(space: KeySpace, other: KeySpace, slots: Slots) -> Slots:
    """Return the slots in ``space`` of the keys of another one at ``slots``; new keys are added.

    Both have fields of the same types; the keys need not be adopted.
    """
    whole = TextKeys, IntKeys  # their indexes have all of a key
    if type(space) is type(other) and isinstance(space, whole) and space is not other:
        return space.index.slots_of_same(other.index, slots)
    found = space.slots(other.arrays(slots))
    space.adopt(found)
    return found


def _release_uses(space: KeySpace, slots: Slots) -> None:
    """Count one use less of each slot; free unused ones, with their parts."""
    gone = space.index.drop_uses(slots)
    if len(gone):
        space.release(gone)


def _texts(column: pa.Array | Lent) -> Lent:
    if isinstance(column, Lent):
        return column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return Lent.of(column if column.type == pa.string() else column.cast(pa.string()))


def _ints(column: KeyColumn) -> Lent:
    if isinstance(column, Lent):
        return column
    assert not isinstance(column, Picked), "only texts are picked"
    return Lent.of(column if column.type == pa.int64() else column.cast(pa.int64()))


def _words(columns: Sequence[KeyColumn]) -> Slots:
    words = np.empty((len(columns[0]), len(columns)), np.int64)
    for at, column in enumerate(columns):
        words[:, at] = _ints(column)
    return words


def _int_array(field: Field, values: Slots) -> pa.Array:
    return pa.array(values != 0 if isinstance(field.type, Bool) else values)


def _mixed(hashes: Hashes, values: npt.NDArray[np.int64] | Hashes) -> Hashes:
    mix_each(hashes, values.view(np.uint64))
    return hashes
