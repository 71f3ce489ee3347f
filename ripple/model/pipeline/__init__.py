"""Users' pipelines, and the validated plans made of them.

builder     the calls of users; draft: order of steps, and union of branches; transitions:
            the draft after a step; checks: the rules for their arguments; migration: of states
plan        the plan; nodes: its parts, waiting_nodes: streams that begin anew; description: as
            readable text; keeping: its state; file: the user's file with it; input_names: the
            source of an input
stages      where it may be cut; topology: the stages that it has; division, copartition: how
            its records must be divided; repartitioned: the sources to repartition;
            new_division: their fields, as a value
event_source, row_steps, output  the source of events, steps of each row, and outputs, checked
table       the source and the fold of a table from a topic
folding     windows and folds, checked; union: of streams
joining     joins of streams, checked; table_join: those of tables
scanning    scans, checked; state_class: the state of a user's function; timers: of its fields;
            market_scans: order books and positions
constant    tables whose rows are part of the plan, and joins with them; given_rows: their rows
asking      nodes that wait for answers, checked
waiting     distinct and final rows, checked
node_keys   under which keys state is found
"""
