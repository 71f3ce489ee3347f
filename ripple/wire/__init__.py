"""What workers say to each other, as bytes. No I/O here.

envelope    header, payload, checksum; messages: what they say; edge_messages: between stages
link        a connection: link_states (every transition), producer, consumer, buffer, keep-alive
outbox      what a slow peer has not taken; position: how far a consumer has followed
bin_prot    the original's encoding: codec, compiled; records, deltas: its records in it
liftbridge  an envelope of others; traceparent: a header; view: frames for people
"""
