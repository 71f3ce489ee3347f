"""Variables that libraries read as they are loaded: for each process of ours that lives long."""

from __future__ import annotations

# What is set already stays.
ENVIRONMENT = {
    # NumPy's threads for linear algebra wait for work that we never have: let them sleep.
    "OPENBLAS_THREAD_TIMEOUT": "4",
    # Arrow's own pool keeps 100 to 200 MB for 1 to 4 MB that live, at the same speed.
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
