"""What a record's value says: one value is one record, in one of several formats.

contract, formats   what a format is; formats by name
held   messages that come once, until they are a batch
json, csv, lines    text, in columns
msgpack, arrow, protobuf, rows   others; rows: those that come one by one
framed, avro, avro_columns, json_schema   values that begin with the id of a schema
registry, references   where these schemas are, with all that they refer to
"""
