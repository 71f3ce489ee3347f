"""Settings that every test shares."""

from __future__ import annotations

from hypothesis import settings

# A machine under load must not turn a slow example into a failure; the example that fails a test
# is printed in a form that repeats it.
settings.register_profile("ripple", deadline=None, print_blob=True)
settings.load_profile("ripple")
