"""Feeds over websockets, as of exchanges: the only importer of the package websockets.

sequence  numbers of a feed's messages: repetitions and gaps; no I/O
uri       of a feed, and its settings
source    for a one-shot run, and for ``ripple log append``
"""
