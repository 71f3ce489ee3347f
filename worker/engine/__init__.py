"""The engine process: the partitions that it hosts, and what they share."""
