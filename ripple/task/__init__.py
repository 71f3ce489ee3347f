"""Tasks: each runs one partition of one stage of a pipeline, and survives a crash.

task, blocking  ``rp.Task``, the public durable run, and a call that waits for it
run, arguments  ``rp.run``; checks of arguments
lifecycle       the states of every task, and its main loop
active, loop    the task of a partition that reads inputs: entries in, changes out
drive           pure: feeds the engine
one_shot        state that is not kept: the task of a one-shot run
durable_state   state that is: claimed, opened and restored, then kept by durable_run
restore, replay   where a task resumes, and how; home: whether the state is a cluster's
standby         hot standbys
downstream, downstream_start, upstream_intake: the task of a downstream stage
reconciliation, published_rows: how its outputs are corrected after a crash
endpoints           inputs and outputs of a pipeline's partitions, by their URIs
outputs, grouping   the changes that each output lacks; outputs with a common commit
checkpointing, settings   checkpoints made concurrently; intervals and sizes
retrying_inputs, passed_inputs   inputs that wait for their server
edges, lanes, tracing   contracts with neighbouring stages; traces across them
notices, report, retried   reports of exceptional records, of a run, of retried dead letters
dead_letters    rejected records, and records that crash the process
repartition     edges between stages that are logs
"""
