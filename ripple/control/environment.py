"""Environment variables that libraries read when they are loaded, for long-running processes."""

from __future__ import annotations

# Variables that are set already stay.
ENVIRONMENT = {
    # NumPy's threads for linear algebra would spin for work that never comes: let them sleep.
    "OPENBLAS_THREAD_TIMEOUT": "4",
    # Arrow's own pool keeps 100 to 200 MB for 1 to 4 MB in use, at the same speed.
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
