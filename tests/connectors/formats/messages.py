"""Messages of Protobuf for tests, without ``protoc``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

ONE, MANY = 1, 3  # labels of fields


def message_of(
    folder: Path, name: str, fields: Mapping[str, tuple[int, int]]
) -> tuple[Any, dict[str, str]]:
    """Return the class of a message, and the options by which it is read.

    fields: the number of each one's type, and its label.
    """
    file = descriptor_pb2.FileDescriptorProto(name="m.proto", package="m", syntax="proto3")
    message = file.message_type.add(name=name)
    for at, (field, (kind, label)) in enumerate(fields.items(), 1):
        message.field.add(name=field, number=at, type=kind, label=label)  # type: ignore[arg-type]
    path = folder / "m.bin"
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName(f"m.{name}"))
    return made, {"message": f"m.{name}", "descriptors": str(path)}
