"""Logical types: columns store their values as whole numbers of 64 bits, of the storage type.

Inside, a value is that number: in columns, keys, states, checkpoints, topics and digests. Outside,
a value is an object of a Python class, a value of an Arrow type, or a text. A place with a rule for
logical types asks here. One without refuses them by name, since none of them is a number.

============  ============  ======================  ==============================
type          outside       Arrow                   text
============  ============  ======================  ==============================
``Date``      ``date``      ``date32``              ISO 8601, ``2026-01-31``
``DateTime``  ``datetime``  ``timestamp[ns, UTC]``  ISO 8601, in UTC, all digits
``Decimal``   ``Decimal``   ``decimal128(p, s)``    digits, s of them behind a point
============  ============  ======================  ==============================

rule      the rule of a type: all that is particular to it; dates, times, decimals
fields    the logical types among fields, and the storage types
columns   columns stored and shown, lists and structs of them too; texts: for files of text
showing   rows and tables shown; values: of users' functions
"""
