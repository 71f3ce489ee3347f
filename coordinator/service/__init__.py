"""The shell around the decisions: calls, sessions with workers, the store, other replicas."""
