"""Outputs and logs over Arrow Flight, for whoever has pandas, Polars, DuckDB or pyarrow open.

framing     Arrow's messages as those of Flight, and back, with care
tables      the outputs of a running cluster, followed while somebody asks
writing     logs that take what is put
sql         what is asked in Flight SQL; sql_catalogue, sql_info: what it says there is to ask
            about, and that it can do
service     what can be asked, without a network
server      the service over gRPC
process     a gateway: ``ripple-gateway``
barrage     tables that tick, for clients of Deephaven
messages    those of Flight, as modules that are generated
"""
