"""Joins: of streams by event time, and of tables at a cut.

stream_join_rows, join_side   what joins of streams have in common; the rows of one side
asof_rows       each left row with the right one at its time; row_table_rows: at once, corrected
eager_rows      what tables of rows at once have in common; pair_table_rows: of interval joins;
                eager_side: the rows of one of their sides
interval_rows   pairs near in time; outer_interval_rows: with right rows of no pair, known_side: the
                rows of one side, due_rows: of both; near_rows: rows found by key and time
table_joins     joins of tables, by their form; table_join_rows: by key, referring_rows: by
                reference, paired_rows: of several to several
pieces          the number of pairs that are made at once
"""
