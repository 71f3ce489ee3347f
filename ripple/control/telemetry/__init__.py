"""Telemetry of processes.

metrics     the one table of names; samples, measures: plain numbers; exposition
log         entries (structlog), process_log, levels, repeats, recent_lines; memory
alerts      pure rules
tracing     spans (opentelemetry), sampler

Each library in brackets, and prometheus_client in exposition, is imported there alone.
"""
