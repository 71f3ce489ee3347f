"""Streams of NATS, as sources and sinks: all that imports nats-py.

place     which stream, and how a connection is made; session: the connection
inputs    what a life reads; subject: a plain subject, which nobody keeps
sink      changes as messages, each once; liftbridge: as messages that a Liftbridge acknowledges
"""
