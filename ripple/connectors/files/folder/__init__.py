"""Files that follow each other: a folder, a pattern of names or a list, read as one input."""
