"""One partition's life, wherever it is lived."""
