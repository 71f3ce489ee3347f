"""The dashboard: a web page of a cluster or a run; see ``docs/dashboard.md``.

contract   the interface of a shown cluster or run
drawing    a plan as a graph to draw
figures    rates and ages, from counters of processes
ticks      one snapshot a tick, shared by all viewers
history    the numbers of charts, with gaps where nobody measured
tables     the visible part of a table, as exact text
outputs    live tables and taps, each with one subscription for all viewers
stored     checkpoints and dead letters in a store
gate       access control and rate limits
web        the HTTP service (extra ``dashboard``), with listening (connections), entrance
           (access), viewers (websockets), headers, files
run        one run of ``ripple run``
assets     fetches third-party files of the page
"""
