"""The embedded event log as a source and as a sink."""
