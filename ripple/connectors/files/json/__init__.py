"""JSON lines: a compiled parser, the source that reads it, and values as JSON text."""
