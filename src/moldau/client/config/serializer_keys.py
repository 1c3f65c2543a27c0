"""Keys of Kafka's own serializers and deserializers, which the clients pass on to them."""

from __future__ import annotations

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

SERIALIZER_KEYS = _keys("serializer")
DESERIALIZER_KEYS = _keys("deserializer")
