"""What workers say to each other, as bytes. No I/O here.

envelope    header, payload, checksum; messages: what they say; edge_messages: between stages
link        a connection: link_states (every transition), link_limits, buffer, keep-alive
bin_prot    the original's encoding: codec, compiled; records: its records in it
liftbridge  an envelope of others; traceparent: a header
"""
