"""The wire protocol between workers: bytes and messages, without I/O.

envelope    header, payload, checksum; messages: types 0-5, 21-23; edge_messages: between stages
link        a connection: link_states (every transition), link_limits, buffer, keep-alive
bin_prot    the binary encoding of types 0-5: codec, compiled; records: their records
traceparent a header of W3C
"""
