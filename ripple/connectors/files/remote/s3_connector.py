"""The connector of files in S3; its functions are imported at first use."""

from ripple.connectors.connector import Connector, Use
from ripple.connectors.files.parquet.connector import ONCE
from ripple.connectors.target import WHOLE

CONNECTOR = Connector(
    scheme="s3",
    form="s3://BUCKET/PATH",
    source=Use(
        "ripple.connectors.files.folder.source:open_s3",
        "one object, or the objects of a folder or a pattern, one after the other, as one input",
    ),
    continued_source=Use(
        "ripple.connectors.files.folder.inputs:open_s3",
        "resumes at the cut, in the recorded order of files; with `--follow` takes new ones, too",
        is_alone=True,
    ),
    sink=Use("ripple.connectors.files.remote.s3_outputs:open_sink", WHOLE, takes_events=True),
    continued_sink=Use(
        "ripple.connectors.files.remote.s3_outputs:continue_sink",
        ONCE,
        reached="ripple.connectors.files.remote.s3_outputs:reached",
        looks="ripple.connectors.files.remote.s3_outputs:look",
        commit_interval_ms=5000,
        takes_events=True,
    ),
    check="ripple.connectors.files.folder.source:check_s3",
)
