"""A registry without a topic: what is decided is replayed at once."""

from __future__ import annotations

from typing import Any, TypeVar

from moldau.services.registry.machine.configs import ConfigChange
from moldau.services.registry.machine.decision import Decision
from moldau.services.registry.machine.parsing import LANGUAGES
from moldau.services.registry.machine.records import Record, decode, encode
from moldau.services.registry.machine.registration import RegisterRequest
from moldau.services.registry.machine.registry import Registry
from moldau.services.registry.machine.schemas import StoredSchema
from moldau.services.registry.machine.scopes import ServerDefaults

__all__ = ["MemoryRegistry"]

R = TypeVar("R")


class MemoryRegistry:
    """Records go through their bytes, as by the topic."""

    def __init__(self, **defaults: Any) -> None:
        self.registry = Registry(LANGUAGES, ServerDefaults(**defaults))
        self.log: list[tuple[bytes, bytes | None]] = []

    def act(self, decision: Decision[R]) -> R:
        for each in decision.records:
            self.append(each)
        return decision.response

    def append(self, record: Record) -> None:
        self.read(*encode(record))

    def read(self, key: bytes, value: bytes | None) -> None:
        self.log.append((key, value))
        record = decode(key, value, timestamp_ms=1_000)
        if record is not None:
            self.registry.replay(record)

    def register(
        self, subject: str, schema: str, *, normalize: bool = False, **more: Any
    ) -> StoredSchema:
        request = RegisterRequest.from_json({"schema": schema, **more})
        registration = self.registry.registration
        return self.act(registration.register(subject, request, normalize=normalize))

    def delete(self, subject: str, *, permanent: bool = False) -> list[int]:
        return self.act(self.registry.deletion.delete_subject(subject, permanent=permanent))

    def delete_version(self, subject: str, version: int, *, permanent: bool = False) -> int:
        deletion = self.registry.deletion
        return self.act(deletion.delete_version(subject, version, permanent=permanent))

    def configure(self, subject: str | None, **config: Any) -> None:
        change = ConfigChange.from_json(config)
        self.act(self.registry.settings.set_config(subject, change))

    def set_mode(self, subject: str | None, mode: str | None, *, force: bool = False) -> None:
        self.act(self.registry.settings.set_mode(subject, mode, force=force))

    def restarted(self) -> MemoryRegistry:
        """What another instance makes of the topic after compaction."""
        other = MemoryRegistry()
        last = {key: index for index, (key, _) in enumerate(self.log)}
        for index, (key, value) in enumerate(self.log):
            # A tombstone is gone in the end, too.
            if last[key] == index and value is not None:
                other.read(key, value)
        return other
