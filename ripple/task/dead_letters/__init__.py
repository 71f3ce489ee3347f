"""Dead letters: records that were refused, and records that end the process that reads them.

log, queue        dead letters of one owner, in a file or in the store
in_flight, notes  what is being applied, noted before it is
suspicion         which record is to blame for crashes, from those notes
hint_store        where letters and notes lie: they move with the partition
"""
