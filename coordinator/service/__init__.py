"""The shell around the decisions: calls, sessions with workers, the store, other replicas.

shell                runs the decisions: events in, instructions out
archive              reads and writes the store
handlers, sessions   methods of the control channel; conversations with workers
peers                the other replicas
worker_lines         warnings and errors in the logs of workers
cluster_identity     the cluster of the store
messages             messages of operators and replicas, and the status, as bytes
"""
