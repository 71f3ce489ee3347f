"""Transforms in order: the fields that they need of a source, and their result for its batches."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.connectors.raw_record import raw_of
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.transforms.steps import MaskText, Passing, ReadTime, Transform, transform_of
from ripple.connectors.validation import screened
from ripple.core.errors import InputError
from ripple.model.batch import Batch
from ripple.model.pipeline.nodes import DELETED
from ripple.model.schema.bytes_form import HEX, BytesForm
from ripple.model.schema.date_form import DateForm
from ripple.model.schema.json_form import JsonForm
from ripple.model.schema.list_form import ListForm
from ripple.model.schema.logical.lists import read_by_text
from ripple.model.schema.time_form import ISO, TimeForm
from ripple.model.schema.types import (
    DateTime,
    Dict,
    HexBytes,
    Int,
    JsonText,
    List,
    Logical,
    PatternDate,
    PatternTime,
    Schema,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from ripple.connectors.validation import Shown
    from ripple.model.schema.checks import Form
    from ripple.model.schema.types import FieldType

HIDDEN = b"not shown: some of its fields are masked"


def transforms_of(said: Mapping[str, Any]) -> list[Transform]:
    """Return the transforms that a TOML file says. Raises InputError."""
    tables = said.get("transform")
    if [*said] != ["transform"] or not isinstance(tables, list):
        raise InputError("it has [[transform]] tables, and nothing else")
    found = []
    for number, table in enumerate(tables, 1):
        try:
            found.append(transform_of(table))
        except InputError as error:
            raise InputError(f"transform {number}: {error}") from error
    return found


class Chain:
    """The transforms from a source to records of ``shape``; ``needed`` are the source's records.

    Offsets are unchanged: a filtered record is a hole, and a record that a transform cannot convert
    is rejected. Checks follow the last transform. If a field is masked, the text of records that
    the source rejects is not shown, since it may contain the field.
    """

    def __init__(self, transforms: Sequence[Transform], shape: RecordShape) -> None:
        """Connect transforms. Raises InputError for those that do not fit together."""
        self._shape = shape
        self._transforms = transforms
        fields = {field.name: field for field in shape.schema.fields}
        for number in range(len(self._transforms), 0, -1):
            try:
                fields = self._transforms[number - 1].needs(fields)
            except InputError as error:
                raise InputError(f"transform {number}: {error}") from error
        schema = Schema(shape.schema.name, tuple(fields.values()), shape.schema.version)
        units = frozenset(filter(self._has_unit, fields))
        iso = frozenset(filter(self._is_iso, fields))
        self.needed = RecordShape(
            schema, table=shape.table, units=units, iso=iso, logical=self._logical()
        )
        self._hides = any(isinstance(one, MaskText) for one in self._transforms)

    def name_of(self, field: str, steps: int | None = None) -> str | None:
        """Return the name of a source's field after so many transforms; None if it is changed."""
        name: str | None = field
        for transform in self._transforms[:steps]:
            name = None if name is None else transform.called(name)
        return name

    def _has_unit(self, field: str) -> bool:
        """Whether a source's field is read as a number of another unit than nanoseconds."""
        return self.name_of(field) in self._shape.units or any(
            isinstance(one, ReadTime)
            and one.form.is_other_unit
            and self.name_of(field, at) == one.field
            for at, one in enumerate(self._transforms)
        )

    def _is_iso(self, field: str) -> bool:
        """Whether a source's field is read as a time of ISO 8601."""
        return self.name_of(field) in self._shape.iso or any(
            isinstance(one, ReadTime)
            and isinstance(one.form, TimeForm)
            and one.form.form == ISO
            and self.name_of(field, at) == one.field
            for at, one in enumerate(self._transforms)
        )

    def _logical(self) -> dict[str, Logical | List]:
        """Return the source texts of values of logical types."""
        forms = {
            one.field: one.form
            for one in self._transforms
            if isinstance(one, ReadTime) and one.form.is_text
        }
        logical = read_by_text(self._shape.schema.fields)
        found = {name: _read_as(form, logical.get(name)) for name, form in forms.items()}
        return {name: kind for name, kind in found.items() if kind is not None}

    def batch(self, batch: Batch) -> Batch:
        """Return a batch transformed."""
        passing = Passing(batch.records)
        for transform in self._transforms:
            transform.apply(passing)
        refused = np.zeros(len(passing.stays), bool)
        refused[[*passing.refused]] = True
        kept = np.flatnonzero(passing.stays | refused)
        names = [field.name for field in self._shape.schema.fields]
        records = pa.RecordBatch.from_arrays([passing.columns[name] for name in names], names)
        place = {int(row): at for at, row in enumerate(kept)}
        reasons = {place[row]: reason for row, reason in passing.refused.items()}
        shown = None if self._hides else self._shown(batch.records, kept)
        found = screened(records.take(pa.array(kept)), self._shape, 0, reasons, shown)
        offsets = batch.offsets()[kept]
        rejected = [
            *(replace(bad, raw=HIDDEN) if self._hides else bad for bad in batch.rejected),
            *(replace(bad, offset=int(offsets[bad.offset])) for bad in found.rejected),
        ]
        records = found.records
        if DELETED in batch.records.schema.names:  # which is no field of the record
            marks = batch.records.column(DELETED).take(pa.array(kept)).take(found.offsets())
            records = records.append_column(DELETED, marks)
        return Batch(
            records,
            batch.next_offset,
            tuple(sorted(rejected, key=lambda bad: bad.offset)),
            offsets[found.offsets()],
            batch.watermark_ns,
        )

    def _shown(self, records: pa.RecordBatch, kept: npt.NDArray[np.int64]) -> Shown:
        """Show records as the source has them: arrays and objects as such, and not as texts."""
        logical = self.needed.logical.items()
        lists = [name for name, kind in logical if isinstance(kind, List | Dict | JsonText)]
        return lambda row: (None, raw_of(records, int(kept[row]), lists=lists))


def _item_read_as(form: Form, kind: FieldType) -> FieldType:
    """Return the same for the items of a list. kind: of the items."""
    if not form.is_text:
        return Int()
    return _read_as(form, kind if isinstance(kind, Logical) else None) or kind


def _read_as(form: Form, kind: Logical | List | None) -> Logical | List | None:
    """Return the type with the rule for texts of a form. kind: of the field."""
    if isinstance(kind, List):
        assert isinstance(form, ListForm)
        return kind if form.item is None else List(_item_read_as(form.item, kind.of))
    if isinstance(form, JsonForm):
        return JsonText()
    if form == BytesForm(HEX):
        return HexBytes()
    if isinstance(form, TimeForm):
        return DateTime() if form.form == ISO else PatternTime()
    if isinstance(form, DateForm) and form.form != ISO:
        return PatternDate()
    return kind
