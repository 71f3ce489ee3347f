"""What every answer tells a browser: to load nothing from elsewhere, and to keep nothing."""

from __future__ import annotations

_NOWHERE = "default-src 'none'; base-uri 'none'; form-action 'none'"
POLICY = (
    f"{_NOWHERE}; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; frame-src 'self'; frame-ancestors 'none'"
)
# Perspective is WebAssembly in a worker, and styles its elements as it goes: it has a page of its
# own, inside of ours, so that nothing else may.
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
