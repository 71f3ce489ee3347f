"""Keys to slots, and keys to partitions.

index       a hash index of one kind of key, compiled
space       keys of several fields and types, as Arrow columns
slots       a set of slots in order of insertion; checked: slots that come from outside
partitioner keys to partitions, as Kafka's default partitioner does it
"""
