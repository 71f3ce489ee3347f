"""Streams of NATS, as sources and sinks: the only importer of nats-py.

uri       of a stream, and settings of the connection; opening; session: the connection
inputs    of a stream; subject: a plain subject, without storage
sink      changes as messages, each once; envelope, liftbridge: messages that Liftbridge stores
"""
