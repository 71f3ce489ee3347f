"""The widget of a live table, for Jupyter and other notebooks with anywidget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ripple.core.extras import needed

with needed("notebook", "a live table in a notebook"):
    import anywidget
    import traitlets

if TYPE_CHECKING:
    from ripple.client.live.view import View

HERE = Path(__file__).parent


class Widget(anywidget.AnyWidget):  # type: ignore[misc]  # an extra, not there for mypy
    """Sends views to its page, each in one message."""

    _esm = HERE / "live_table.js"
    _css = HERE / "live_table.css"
    shown = traitlets.Dict().tag(sync=True)

    def show(self, view: View) -> None:
        """Send a view."""
        self.shown = view.message()

    def bundle(self, **asked: Any) -> Any:
        """Return its MIME bundle for a notebook."""
        return self._repr_mimebundle_(**asked)
