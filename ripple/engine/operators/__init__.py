"""Operators: row steps, admission, folds over events, windows and tables, and joins.

rows            rows on their way through steps; constant_rows: the rows of constants beside them;
                union_rows: those of all branches of a union
admission       checks of a source's rows; division: of their partitions; deletion_times: of
                deletions that tell none
event_fold, windowed_fold, ending_fold, newest_fold   folds over events, by their kind
table_fold, groups   a fold over the rows of another fold; its groups
result_rows, uncomputable   results as rows, and those that cannot be computed
stream_rows, final_rows   rows on their way to outputs, and out of a windowed fold
waiting, join_state   the contract of nodes that hold rows; where a join is
held_rows, passed_rows   rows until a mark has passed them, and after it; their order
scan_rows       scans, by their step: running_scan_rows, book_scan_rows, step_scan_rows (state_step,
                position_step; with timers timed_scan_rows)
book_table_rows, step_table_rows, last_table_rows   the same at once, corrected; step_logs: by key
distinct_rows, asked_rows   rows of ``.distinct``, and those that wait for answers
answer_names, answer_rows, arrow_types   columns of answers, their rows; types of columns
joins           of streams and of tables
"""
