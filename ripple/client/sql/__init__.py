"""SQL over live outputs: DuckDB, in a process of its own, with limits."""
