"""Serdes with a Schema Registry, and pickle for those who ask for it."""

from __future__ import annotations

import pickle
from typing import Any

from moldau.streams.serdes import Serde, SimpleSerde


class RegistrySerde:
    """A serializer and a deserializer of `moldau.serde` as one serde."""

    def __init__(self, serializer: Any, deserializer: Any) -> None:
        self._serializer = serializer
        self._deserializer = deserializer
        self.serialize = serializer.serialize
        self.deserialize = deserializer.deserialize

    def close(self) -> None:
        """Close what was opened to a registry."""
        self._serializer.close()
        self._deserializer.close()


def avro_serde(
    schema: Any = None,
    *,
    registry: Any = None,
    is_key: bool = False,
    **options: Any,
) -> Serde[Any]:
    """Avro: avro_serde('{"type": "string"}', registry="http://127.0.0.1:8081").

    `options` are `to_dict`, `from_dict` and `config`, as in `moldau.serde`.
    """
    from moldau.serde import AvroDeserializer, AvroSerializer

    given = {"registry": registry, "is_key": is_key, "config": options.pop("config", None)}
    to_dict, from_dict = options.pop("to_dict", None), options.pop("from_dict", None)
    _none_left(options)
    return RegistrySerde(
        AvroSerializer(schema, to_dict=to_dict, **given),
        AvroDeserializer(schema, from_dict=from_dict, **given),
    )


def json_schema_serde(
    schema: Any = None,
    *,
    registry: Any = None,
    is_key: bool = False,
    **options: Any,
) -> Serde[Any]:
    """JSON with a schema: json_schema_serde(SCHEMA, registry="http://127.0.0.1:8081").

    `options` are `to_dict`, `from_dict` and `config`, as in `moldau.serde`.
    """
    from moldau.serde import JsonSchemaDeserializer, JsonSchemaSerializer

    given = {"registry": registry, "is_key": is_key, "config": options.pop("config", None)}
    to_dict, from_dict = options.pop("to_dict", None), options.pop("from_dict", None)
    _none_left(options)
    return RegistrySerde(
        JsonSchemaSerializer(schema, to_dict=to_dict, **given),
        JsonSchemaDeserializer(from_dict=from_dict, **given),
    )


def protobuf_serde(
    message: Any,
    *,
    registry: Any = None,
    is_key: bool = False,
    config: Any = None,
) -> Serde[Any]:
    """Messages of a generated class, or dicts for a schema: protobuf_serde(Order, registry=...)."""
    from moldau.serde import ProtobufDeserializer, ProtobufSerializer

    given = {"registry": registry, "is_key": is_key, "config": config}
    message_class = message if isinstance(message, type) else None
    return RegistrySerde(
        ProtobufSerializer(message, **given), ProtobufDeserializer(message_class, **given)
    )


def pickle_serde() -> Serde[Any]:
    """Any Python object. Reading runs code that the writer chose: only for topics of your own."""
    return SimpleSerde(pickle.dumps, pickle.loads)


def _none_left(options: dict[str, Any]) -> None:
    if options:
        raise TypeError(f"unknown options: {', '.join(sorted(options))}")
