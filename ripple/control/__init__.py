"""Control: agreements and reports of the processes of a cluster, and their start and end.

assignment, rpc       ownership of partitions; the messages of the control channel
telemetry, probes     metrics, logs, alerts, traces; health checks over HTTP
daemon, signals, process, process_settings, event_loop, environment   our long-running processes
secrets, reread, validity   settings that are hidden, reread, or expire
"""
