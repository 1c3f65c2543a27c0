"""Confluent's metadata of fields, messages and files: documentation, parameters, tags."""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pool, message_factory

from moldau.data.protobuf import well_known

_DESCRIPTOR = "google/protobuf/descriptor.proto"


@cache
def _pool() -> Any:
    """A pool that has descriptors as messages, and Confluent's options for them."""
    pool = descriptor_pool.DescriptorPool()
    for name in (_DESCRIPTOR, well_known.META):
        pool.AddSerializedFile(well_known.descriptor(name))
    return pool


@cache
def descriptor_class(name: str) -> Any:
    """A message of descriptor.proto that knows Confluent's options: `FieldOptions`."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"google.protobuf.{name}"))


@cache
def _extension(name: str) -> Any:
    return _pool().FindExtensionByName(f"confluent.{name}")


def field_meta(field: Any) -> Any:
    """The confluent.Meta of a field's descriptor; an empty one if it has none."""
    options = descriptor_class("FieldOptions").FromString(field.GetOptions().SerializeToString())
    return options.Extensions[_extension("field_meta")]
