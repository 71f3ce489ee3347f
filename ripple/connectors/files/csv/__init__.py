"""CSV: the format, a compiled parser, and the source that reads it."""
