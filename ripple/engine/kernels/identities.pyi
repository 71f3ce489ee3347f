from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]

def letters_of(schema: pa.Schema) -> bytes | None: ...
def digest_of(rows: Any, letters: bytes, seed: int, offsets: Ints, indexes: Ints) -> int: ...
def digest_in_span(
    rows: Any,
    letters: bytes,
    seed: int,
    places: Ints,
    first: int,
    end: int,
    base: int,
    indexes: int,
) -> int | None: ...
def only_span(places: Ints, span: int, preceding: int) -> int: ...
def identities_of(places: Ints, base: int, inputs: int, indexes: int) -> tuple[Ints, Ints]: ...
