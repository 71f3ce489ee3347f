"""Tables of PostgreSQL as sinks, and their changes as sources; psycopg is imported when wanted."""
