"""A registry in the process of a test, on a loop in a thread of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from moldau.services.registry.app import SchemaRegistry
from moldau.services.registry.config import RegistryConfig
from moldau.services.registry.machine.decision import Decision
from moldau.services.registry.machine.key_records import KeySet
from moldau.services.registry.machine.records import (
    ConfigSet,
    ContextSet,
    ModeSet,
    Record,
    SchemaSet,
)
from support.http_service import Running, running
from support.registry.client import RestClient

__all__ = ["RegistryStage", "registry_on"]


@dataclass
class RegistryStage:
    running: Running
    client: RestClient

    @property
    def registry(self) -> SchemaRegistry:
        service: SchemaRegistry = self.running.service
        return service

    def reset(self) -> None:
        """Remove everything for good, in one write."""
        state = self.registry.service.registry.state
        records: list[Record] = [
            SchemaSet(subject, each.version, None)
            for subject in list(state.matching(None, deleted=True))
            for each in state.versions(subject, deleted=True)
        ]
        records += [ConfigSet(name, None) for name in state.configs]
        records += [ModeSet(name, None) for name in state.modes]
        records += [ContextSet(name, exists=False) for name in state.contexts]
        leadership = self.registry.service.leadership
        keys = self.registry.service.keys
        if keys.ids:
            gone = tuple(KeySet(id, None) for id in keys.ids)
            self.running.call(
                lambda: leadership.write(lambda: Decision(gone, None), leadership.keys_log)
            )
        if records:
            self.running.call(lambda: leadership.write(lambda: Decision(tuple(records), None)))


@contextmanager
def registry_on(bootstrap_servers: str, **settings: Any) -> Iterator[RegistryStage]:
    """Keys are given with underscores for dots."""
    properties = {
        "kafkastore.bootstrap.servers": bootstrap_servers,
        "listeners": "http://127.0.0.1:0",
        "kafkastore.timeout.ms": "20000",
        **{name.replace("_", "."): str(value) for name, value in settings.items()},
    }
    with running(lambda: SchemaRegistry(RegistryConfig.of(properties))) as service:
        yield RegistryStage(service, RestClient(service.url))
