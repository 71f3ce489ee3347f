"""What to do about each alert of a cluster, as docs/operations.md has it: a test compares them."""

RUNBOOK = {
    "StabilizationSlow": (
        "look at the aggregates and the number of keys (`ripple plan`). More partitions or "
        "processes; a smaller `--batch-rows` makes smaller steps."
    ),
    "BackpressureHigh": (
        "which queue is it (`ripple_worker_queue_fill`)? `outboxes`: a downstream worker is"
        " slow. `uncommitted`: outputs commit slowly; look at the broker. `divided`: the "
        "next stage is slow. Add workers if all are busy (`ripple_worker_load`)."
    ),
    "LateEventsExcessive": (
        "dropped events are counted, and kept as dead letters if configured. Find the wrong"
        " clock, or allow more lateness in the pipeline, which is code: see changing a "
        "pipeline."
    ),
    "CheckpointStale": (
        "the store. See `ripple_checkpoint_failures_total`, and the log's \"a checkpoint was"
        ' not stored" for the reason.'
    ),
    "WorkerSilent": (
        "if many are silent at once it is the network, and none is evicted for 30 s on "
        "purpose. Otherwise the cluster may be frozen (`ripple cluster unfreeze`)."
    ),
    "SchemaMismatch": (
        "`ripple status` shows the difference. Finish the roll-out or roll back, so that "
        "all workers have the same: how."
    ),
    "ProcessesDying": (
        "the cause names the last one. `SIGKILL`: memory; give it more, or fewer partitions"
        " a process. A pipeline's file that was changed under a worker: restart the worker."
        " If a process cannot work for ten seconds, or has ended twenty times in ten "
        "minutes, the worker gives its partitions to others and ends with exit code 1; the "
        "last worker of a cluster continues to try."
    ),
    "DataLossDetected": (
        "the partition wrote nothing. Do not restart it before finding the cause: the "
        "input, the checkpoint or the code differs from that of the output. `ripple "
        "checkpoint verify`; was a topic recreated, was retention too short, was code "
        "changed without a migration? Moving the checkpoints away makes the partition "
        "compute from the log."
    ),
    "CertificateExpires": (
        "after that, new connections are refused and present ones continue. Replace the "
        "files; nothing needs a restart. `ripple status` and the log name a coordinator's "
        "certificate. A gateway, which has no metrics, reports it daily in its log and in "
        "`problems` of its `/health`."
    ),
    "ResultsNotComputed": (
        "a division by zero, a number that does not fit, an error of your own code. The "
        "log's \"rows of fold ... that cannot be computed\" names the first row's key, step "
        "and reason; `ripple_fold_uncomputable_rows` and UNCOMPUTABLE of `ripple inspect "
        "graph --format text` count them. A row is there as soon as it can be computed; "
        "otherwise fix the step, see changing a pipeline."
    ),
    "EventsFromFuture": (
        "(of the last five minutes): they count and advance the watermark, so that events "
        "of the present may be very late. Find the wrong clock, or allow more with "
        "`future=` if the feed pauses for longer than that, as at night. `reject_future=` "
        "of the source makes dead letters of them instead."
    ),
    "KeysOverBudget": (
        "nothing is rejected, but memory, checkpoints and moves of the partition grow "
        "(`ripple_partition_keys`; a key in two open windows counts twice; each row of an "
        "eager join is one until it is final). More partitions, if `ripple inspect "
        "partitions` shows that all have many. A running fold keeps each key for ever; a "
        "window or a coarser key does not. Or raise the budget."
    ),
}
