"""Times in the forms that a source writes them in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.connectors.transforms.chain import Chain
from ripple.connectors.transforms.steps import ReadTime

if TYPE_CHECKING:
    from ripple.connectors.record_shape import RecordShape


def forms_of(shape: RecordShape) -> Chain:
    """Return the chain from a source's records to records of ``shape``."""
    return Chain([ReadTime(name, form) for name, form in shape.forms.items()], shape)


def as_written(shape: RecordShape) -> RecordShape:
    """Return the shape of records as a source writes them."""
    return forms_of(shape).needed if shape.forms else shape
