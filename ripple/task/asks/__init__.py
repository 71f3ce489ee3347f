"""Answers of services: the calls for rows that wait, and the log of a durable run.

answered_inputs   inputs with answers to rows
calling, calls, timed_turns   calls; when each is made, pure; which one blocks the loop
answer_log, answer_objects    the log of a partition's answers; the objects in it
answer_letters    its failures, as dead letters
"""
