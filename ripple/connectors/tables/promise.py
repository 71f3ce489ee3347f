"""The promise of continued tables to their readers; without imports, as connectors have it."""

EACH_CUT_ONCE = (
    "each cut once, one commit of the table: readers see whole cuts, and each key's newest row"
)
