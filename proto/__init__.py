"""The Caffe-compatible schema: ``from layrubnet.proto import NetParameter, LayerParameter``.

Every message of the ``.proto`` files is an attribute of this module, and so is the enum ``Phase``
with its values ``TRAIN`` and ``TEST``. The descriptors live in a private pool: an installed Caffe,
or a second schema with the same names, cannot clash with them. The classes are made at run time,
hence their type is ``Any`` for type checkers.
"""

from __future__ import annotations

from importlib import resources
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

PACKAGE = "layrubnet"
TRAIN = 0
TEST = 1


def load_pool(serialised: bytes) -> tuple[descriptor_pool.DescriptorPool, dict[str, Any]]:
    """Return a pool of its own with the given FileDescriptorSet, and its messages by name."""
    files = descriptor_pb2.FileDescriptorSet.FromString(serialised)
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:  # protoc wrote every file after those that it imports
        pool.Add(file)
    classes = {}
    for file in files.file:
        for name, kind in pool.FindFileByName(file.name).message_types_by_name.items():
            classes[name] = message_factory.GetMessageClass(kind)
    return pool, classes


_POOL, MESSAGES = load_pool((resources.files(__name__) / "schema.binpb").read_bytes())
Phase = EnumTypeWrapper(_POOL.FindEnumTypeByName(f"{PACKAGE}.Phase"))


def __getattr__(name: str) -> Any:
    try:
        return MESSAGES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted([*globals(), *MESSAGES])


def enum_name(message: Any, field: str) -> str:
    """Return the name of an enum field's value (or default): ``enum_name(pooling, "pool")``."""
    kind = message.DESCRIPTOR.fields_by_name[field].enum_type
    return str(kind.values_by_number[getattr(message, field)].name)


def enum_value(message: Any, field: str, name: str) -> int:
    """Return the number of the named value of an enum field."""
    kind = message.DESCRIPTOR.fields_by_name[field].enum_type
    return int(kind.values_by_name[name].number)


def phase_name(phase: int) -> str:
    """Return ``"TRAIN"`` or ``"TEST"``."""
    return str(Phase.Name(phase))
