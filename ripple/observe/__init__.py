"""What is seen of processes from outside: the only place that imports prometheus_client."""
