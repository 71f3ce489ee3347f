"""Tasks: each runs one partition of one stage of a pipeline, and survives a crash.

task, blocking  ``rp.Task``, the public durable run, and a call that waits for it
run, arguments  ``rp.run``; checks of arguments
lifecycle       the states of every task, and its main loop
spec, stage_spec   a task's computation, over inputs or a subscription; where it runs
live, durable_run   a partition at work: it writes and commits; how it recovers, when it commits
record_intake, drive   entries of inputs in; pure: feeds the engine
upstream_intake   changes of the upstream stage in
one_shot        the state of a one-shot run, in memory
durable_task    how a durable run is put together: of a command, a worker, Spark, the crash kit
owned_state, durable_state, subscribed_state   state that is: claimed, opened, restored
replay, reconciliation   how outputs are recovered, by either strategy
restore, home   where a task resumes; whether the state is a cluster's
moving          state of several stages, and its outputs, go to another home, which needs:
former_home, former_rows, new_home   the state there; rows that are over; a partition here
standby         how a task follows the owner of its partition, before it is promoted
outputs, replayed_outputs, published_rows   the changes that each output lacks
grouping, endpoints   outputs with a common commit; inputs and outputs by their URIs
checkpointing, settings   checkpoints made concurrently; intervals and sizes
retrying_inputs inputs that wait for their server
several_sources, next_source   inputs of several sources as one; which of them is next
logged_inputs, input_log, marker_input   inputs with a log of the pipeline's own; that log
file_log    the files that an input has taken
marked_inputs, marker_log, idleness   inputs with markers of the silent ones
empty_inputs    empty inputs, where they hold rows back
edges, lanes, tracing   contracts with neighbouring stages; traces across them
notices, report, retried   reports of exceptional records, of a run, of retried dead letters
collect, result, compared   ``rp.collect``; its rows; whether these are the expected ones
progress        the line that shows a run's records and rate
units       event times that look as if they had another unit
asks            calls of services, and the log of their answers
dead_letters    rejected records, and records that crash the process
repartition     edges between stages that are logs
"""
