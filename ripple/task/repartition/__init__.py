"""Repartition topics: edges between stages that are logs, and a source's records repartitioned.

rows        the format of a lane's records
lane        one lane: written with marks, read by whole cuts
lanes       the lanes of a sender, as outputs of its task
carried     the same, in the transaction of its outputs
reading     reads the lanes of a receiver: in logs; broker_reading: at a broker
inputs      records of the source, for a receiver
follows     changes of the upstream stage, for a receiver
edge        both ends of such an edge, at a broker or on the disk
topics      the lanes of each sender and receiver, and their location

docs/repartition.md has the reasons.
"""
