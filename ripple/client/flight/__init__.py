"""Arrow Flight, Flight SQL and Barrage: outputs and logs for pandas, Polars, DuckDB and pyarrow.

framing        Arrow IPC messages as FlightData, and back, validated
tables         snapshots of a running cluster's outputs
reader         the reader of a call, and the outputs that it may read
writing        logs that accept DoPut
sql            Flight SQL; sql_catalogue, sql_info: its metadata
service        the requests, without a network
server         the service over gRPC
settings       the settings of a gateway
process        the gateway process: ``ripple-gateway``
errors         errors as gRPC status codes
barrage        ticking tables, for clients of Deephaven
messages       the generated protobuf messages
"""
