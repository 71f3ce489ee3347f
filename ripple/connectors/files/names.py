"""The names of data files: folders and buckets follow the same rules."""

FILES_MAX = 100_000
HIDDEN = ("_", ".")
"""The first bytes of other names: markers of success, checksums, half files."""
