"""Core: values and helpers that every other wing may use. No I/O; it imports nothing of ours.

errors, arguments, calls, frozen, lazy, extras   errors, checked arguments, values, late imports
cut, row_ops, events, causes              positions in inputs, operations on rows, life-cycle events
uncompiled                                the remedy for a module that was not compiled
access, credentials                       roles, proofs of identity
setting, settings, settings_file, sexp    declared settings, their values in force; S-expressions
hashing, int64s, codec                    compiled hashes and arrays; Arrow, CRC and compression
event_text, tracing                       events as lines for people; spans
asked                                     the key of the row that a call of an .ask is for
"""
