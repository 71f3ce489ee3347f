"""PostgreSQL: tables as sinks, and their changes as sources; psycopg is imported when wanted.

connector  what the registry knows; uri: the tables that are named; record, table, session, sink:
           rows written, and sink_opening
position   where in a server's log changes stand
messages   what the plugin pgoutput sends: transactions, relations, changes
row        what one change says as a record, and whether a table fits one
slot       a slot's state and what is known of it in ``ripple_slots``; who may read
stream     the connection on which a slot's changes come
inputs     what a task reads; source_opening
"""
