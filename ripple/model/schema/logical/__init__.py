"""Logical types: columns store their values as numbers or texts, of the storage type.

Inside, a value is a whole number of 64 bits, or a text, in the order of the values: in columns,
keys, states, checkpoints, topics and digests. Outside, a value is an object of a Python class, a
value of an Arrow type, or a text. A place with a rule for logical types asks here. One without
refuses them by name, since none of them is a number or a text.

============  ============  ======================  ==============================
type          outside       Arrow                   text
============  ============  ======================  ==============================
``Date``      ``date``      ``date32``              ISO 8601, ``2026-01-31``
``DateTime``  ``datetime``  ``timestamp[ns, UTC]``  ISO 8601, in UTC, all digits
``Decimal``   ``Decimal``   ``decimal128(p, s)``    digits, s of them behind a point
``Uuid``      ``UUID``      ``string``              36 characters, in lower case, as stored
``Bytes``     ``bytes``     ``binary``              base64; hexadecimal digits as stored
============  ============  ======================  ==============================

A decimal of 19 digits or more is a ``WideDecimal``, stored as 32 hexadecimal digits.

rule      the rule of a type: all that is particular to it; dates, times, patterns, decimals,
          wide_decimals, uuids, binary, lists, maps, items, json_texts
fields    the logical types among fields, and the storage types
columns   columns stored and shown, lists and structs of them too; texts: for files of text
objects   arrays of Python values; forms: types with one form of texts
showing   rows and tables shown; values: of users' functions
"""
