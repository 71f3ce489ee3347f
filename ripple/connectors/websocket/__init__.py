"""Feeds over websockets, as exchanges have them: what imports the package websockets.

sequence  the numbers of a feed's messages: what comes again, what is missing; no I/O
place     which feed, and what it is told
source    what a plain run reads, and ``ripple log append`` records
"""
