"""Records as users declare them: classes, and the schemas and checks that are derived from them.

record      the decorator, fields and their checks, event times
derive      a class to its schema; members: its fields, for any kind of class
constraints checks that annotations of other libraries ask for; declared: settings of their classes
"""

from __future__ import annotations

from ripple.model.records.constraints import checks_of, nested_checks_of
from ripple.model.records.derive import schema_of, time_field_of
from ripple.model.records.record import Timestamp, field, record

__all__ = [
    "Timestamp",
    "checks_of",
    "field",
    "nested_checks_of",
    "record",
    "schema_of",
    "time_field_of",
]
