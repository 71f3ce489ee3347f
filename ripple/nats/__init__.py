"""Streams of NATS, as sources and sinks: all that imports nats-py.

envelope  the head of Liftbridge's messages on plain subjects, to the byte
place     which stream, and how a connection is made; session: the connection
inputs    what a life reads
sink      changes as messages, each once
"""
