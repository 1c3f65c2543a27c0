"""ConfigError: invalid configuration, described in a single line."""

from __future__ import annotations

__all__ = ["ConfigError"]


class ConfigError(ValueError):
    """Names the key, the value that was given and what is allowed, in one line.

    `key` and `value` are attributes too, for callers that hide a secret or respond to a client.
    """

    def __init__(self, message: str, *, key: str | None = None, value: str | None = None) -> None:
        self.message = " ".join(message.split())
        super().__init__(self.message)
        self.key = key
        self.value = value

    @classmethod
    def invalid(cls, key: str, value: object, allowed: str) -> ConfigError:
        """In Kafka's wording for an invalid value, so that its users recognise it."""
        shown = "null" if value is None else str(value)
        text = f"Invalid value {shown} for configuration {key}: {allowed}"
        return cls(text, key=key, value=shown)
