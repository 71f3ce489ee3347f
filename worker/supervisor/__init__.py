"""The supervisor: a worker as the cluster sees it. It never computes."""
