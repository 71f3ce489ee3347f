"""Security headers of all answers: no foreign resources, no caching."""

from __future__ import annotations

_NOWHERE = "default-src 'none'; base-uri 'none'; form-action 'none'"
POLICY = (
    f"{_NOWHERE}; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; frame-src 'self'; frame-ancestors 'none'"
)
# Perspective is WebAssembly in a worker, and sets styles at run time: it has a nested page of
# its own, so that the main page needs no such rights.
EXPLORE_POLICY = (
    f"{_NOWHERE}; script-src 'self' blob: 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; connect-src 'self' data:; worker-src 'self' "
    "blob:; frame-ancestors 'self'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
EXPLORE_HEADERS = {"Content-Security-Policy": EXPLORE_POLICY, "X-Frame-Options": "SAMEORIGIN"}
