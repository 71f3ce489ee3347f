"""Time zones and the spans of their calendar: days, weeks, months, and hours of a local day.

zone    offsets from UTC, from the package tzdata
spans   where spans of a zone begin; definition: the same by definition, for the reference
"""
