"""Lines of text, CSV or JSON, as a sink: to files, streams, and files that a restart continues."""
