"""Objects in memory."""

from __future__ import annotations

from ripple.core.errors import LimitError


class MemoryStore:
    """Objects in this process, lost when it ends."""

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}

    async def put_if_absent(self, name: str, data: bytes) -> bool:
        """Store an object unless the name is taken; return whether this call stored it."""
        if name in self._objects:
            return False
        self._objects[name] = bytes(data)
        return True

    async def get(self, name: str, *, length_max: int) -> bytes | None:
        """Return an object, None if there is none."""
        data = self._objects.get(name)
        if data is not None and len(data) > length_max:
            raise LimitError(f"{name} is longer than {length_max} bytes")
        return data

    async def list(self, prefix: str) -> list[str]:
        """Return the names that start with ``prefix``, sorted."""
        return sorted(name for name in self._objects if name.startswith(prefix))

    async def delete(self, name: str) -> None:
        """Forget an object."""
        self._objects.pop(name, None)
