"""What a registry refuses, or why it cannot be reached."""

from __future__ import annotations

from moldau.client.errors import KafkaError

__all__ = ["RegistryError", "RegistryUnavailableError"]


class RegistryError(KafkaError):
    """The registry's own answer: `status` of HTTP, and `error_code` as Confluent numbers it."""

    def __init__(self, message: str, *, status: int, error_code: int, url: str) -> None:
        super().__init__(f"{message} (error code {error_code}, from {url})")
        self.status = status
        self.error_code = error_code
        self.url = url


class RegistryUnavailableError(KafkaError):
    """No registry answered."""

    advice = "check schema.registry.url, and that the registry runs"

    @property
    def retriable(self) -> bool:
        return True
