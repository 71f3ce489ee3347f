"""The uses of text files in their connectors."""

from ripple.connectors.connector import Use
from ripple.connectors.target import AGAIN, STAYS, WHOLE

ONCE = "each cut once, in order, up to the length in its `.cut` file"
COMPRESSED = (".gz", ".zst")  # suffixes of files to decompress; nothing is compressed


def lines_read(opens: str, *suffixes: str) -> Use:
    """Return how lines are read."""
    compressed = (f"{suffix}{end}" for suffix in suffixes for end in COMPRESSED)
    on_stream = "once; a batch ends when no input is waiting"
    return Use(opens, "from beginning to end", (*suffixes, *compressed), on_stream)


def lines_written(opens: str, *suffixes: str) -> Use:
    """Return how lines are written."""
    return Use(opens, WHOLE, suffixes, on_stream=STAYS, takes_events=True)


def lines_continued(opens: str, looks: str, *suffixes: str) -> Use:
    """Return how lines are written on by a run that is restarted."""
    return Use(opens, ONCE, suffixes, on_stream=AGAIN, looks=looks, takes_events=True)
