"""PostgreSQL: tables as sinks, and their changes as sources; psycopg is imported at first use.

connector  declaration; uri: of tables; answers: connections with time-outs
record, table, session, sink    rows, the cut record, and their transaction; sink_opening
position   in a server's log
messages   of the plugin pgoutput: transactions, relations, changes; changes: of one table
cells      columns' values as JSON
row        a change as a record, and whether a table fits one
slot       a slot's state and its record in ``ripple_slots``; rights to read
stream     the replication connection of a slot
inputs     of a table; source_opening
"""
