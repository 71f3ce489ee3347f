"""Repartition topics: edges between stages that are logs, and the records of a source anew divided.

rows        what a lane's records look like
lane        one lane: written with marks, read by whole cuts
lanes       what a sender writes, as outputs of its life
carried     the same, in the transaction of its outputs
reading     what reads the lanes of a receiver: in logs; broker_reading: at a broker
inputs      records of the source, as a receiver reads them
follows     changes of the stage before, as a receiver follows them
topics      which lane is whose, and where

docs/repartition.md says why.
"""
