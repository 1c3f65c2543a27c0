"""Keys of the serializers and deserializers that are built in: the clients pass them on."""

from __future__ import annotations

from moldau.client.config.registry_keys import REGISTRY_KEYS

__all__ = ["DESERIALIZER_KEYS", "SERIALIZER_KEYS"]


def _keys(role: str) -> tuple[str, ...]:
    return (
        f"{role}.encoding",
        *(f"{side}.{role}.encoding" for side in ("key", "value")),
        *(f"list.{side}.{role}.inner" for side in ("key", "value")),
        *(f"list.{side}.{role}.type" for side in ("key", "value")),
        *(f"default.list.{side}.serde.{part}" for side in ("key", "value") for part in _PARTS),
    )


_PARTS = ("inner", "type")

_ENCRYPTION = ("encryption.keys", "encryption.keys.location")

SERIALIZER_KEYS = (
    *_keys("serializer"),
    *_ENCRYPTION,
    "encryption.data.key.records.max",
    "encryption.value.serializer",
    *REGISTRY_KEYS,
)
DESERIALIZER_KEYS = (
    *_keys("deserializer"),
    *_ENCRYPTION,
    "encryption.value.deserializer",
    *REGISTRY_KEYS,
)
