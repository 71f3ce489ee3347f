"""Connectors: sources of events and sinks for changes.

contract    of sources and sinks; inputs: resumable sources; connector: a connector's declaration
registry    of schemes; installed: connectors of packages; settings; locate: opening by URI
source_inputs, blocking_inputs, live_inputs    the door of one-shot runs
memory      of Python objects: row_items, arrow_items; record_columns: their common form
passed_inputs    the base of wrappers around inputs
commit_group    of a partition's outputs; endings: of streams; identity: of what a URI names
delta_lake, files, formats, iceberg, kafka, log, nats, postgres, redis, synthetic, tables
transforms, websocket
target      files and streams to write to; standard: streams by name; server_uri
raw_input   bytes; line_blocks: of whole lines; prefetch; cutting: into batches
open_reading    of a source; buffered_input, reading_ahead    ahead of the task; restartable_input
coercion, validation, record_shape, python_values    conversion to the declared types, and checks
dead_letter, letter, raw_record    rejected records; retries: of dead letters
background  an event loop in a thread; client_tls; library_errors: of client libraries
"""
