"""Formats of record values: one value is one record.

contract, formats   of a format; formats by name
held   messages that come once, until they are a batch
json, csv   text, in columns
msgpack, arrow, protobuf, rows   others; rows: records that come one by one
framed, avro, json_schema   values that begin with the id of a schema
avro_writers   how Avro's are read, by the schemas of their writers
avro_types, avro_decimals   types of its schemas; decimals in bytes
avro_objects   the same in Avro one by one: record keys, envelopes
table_changes, record_keys, envelopes   values and record keys as changes of a table
registry, references   of these schemas, with all that they refer to
"""
