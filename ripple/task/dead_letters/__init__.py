"""Dead letters: rejected records, and records that crash the process that reads them.

log, queue        dead letters of one owner, in a file or in the store
in_flight, notes  notes of the records about to be applied
suspicion         finds the record that caused crashes, from those notes
hint_store        the location of dead letters and notes: it moves with the partition
"""
