"""Where events come from and where changes go.

contract    what sources and sinks are; inputs: what a life reads; connector: what one says
registry    which one a place belongs to; installed: those of other packages; settings
csv, delta_lake, json, log, parquet, postgres, synthetic, text    one noun a folder
standard    standard input and output by name
raw_input   bytes, line_blocks: in whole lines, prefetch: ahead, cutting: into batches
conforming, screening, record_shape, python_values    what comes, as what was declared
dead_letter, raw_record    what was refused; background: a loop for callers that wait
client_tls  how clients of other systems speak TLS; library_errors: what they say went wrong
"""
