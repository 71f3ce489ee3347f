"""Settings that every test shares."""

from __future__ import annotations

from hypothesis import settings

from tests.examples import EXAMPLES

# A machine under load must not turn a slow example into a failure; the example that fails a test
# is printed in a form that repeats it.
settings.register_profile("ripple", max_examples=30 * EXAMPLES, deadline=None, print_blob=True)
settings.load_profile("ripple")
