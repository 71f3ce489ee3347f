"""Kafka: places whose records are read and written in columns, and the transaction that commits."""
