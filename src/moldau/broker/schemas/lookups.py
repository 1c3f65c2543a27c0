"""Asks the registry, in a thread: its client blocks."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final
from uuid import UUID

from moldau.broker.schemas.machine.known import Found, SchemaName

if TYPE_CHECKING:
    from moldau.serde.registry_client import SchemaRegistryClient

__all__ = ["RegistryLookups", "RegistrySilent"]

logger = logging.getLogger(__name__)

NOT_FOUND: Final = 404
_THREADS: Final = 2
_TIMEOUT_MS: Final = 5000


class RegistrySilent(Exception):
    """The registry did not answer, or not sensibly."""


class RegistryLookups:
    """Made once per broker that has `confluent.schema.registry.url`."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = {
            "http.read.timeout.ms": str(_TIMEOUT_MS),
            "max.retries": "1",
            **settings,
        }
        self.executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="schema-validation")
        self._client: SchemaRegistryClient | None = None

    def look_up(
        self, schemas: Iterable[SchemaName], *, with_names: bool
    ) -> dict[SchemaName, Found | None]:
        """In one of the threads. Raises RegistrySilent."""
        from moldau.client.errors import KafkaError
        from moldau.serde.registry_client import SchemaRegistryClient

        try:
            if self._client is None:
                self._client = SchemaRegistryClient(config=self._settings)
            return {each: self._found(self._client, each, with_names) for each in schemas}
        except (KafkaError, ValueError, ImportError) as error:
            logger.warning("the schema registry does not answer: %s", error)
            raise RegistrySilent(str(error)) from error

    @staticmethod
    def _found(client: SchemaRegistryClient, schema: SchemaName, with_names: bool) -> Found | None:
        from moldau.serde.errors import RegistryError

        try:
            if isinstance(schema, int):
                subjects = client.subjects_of_id(schema)
            else:
                subjects = client.subjects_of_guid(str(UUID(bytes=schema)))
            if not with_names:
                return Found(frozenset(subjects))
            return Found(frozenset(subjects), _record_name(client, schema))
        except RegistryError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def close(self) -> None:
        self.executor.shutdown(wait=False, cancel_futures=True)
        if self._client is not None:
            self._client.close()


def _record_name(client: SchemaRegistryClient, schema: SchemaName) -> str | None:
    from moldau.serde.languages import parse_schema

    if isinstance(schema, int):
        found = client.schema_by_id(schema)
    else:
        found = client.schema_by_guid(str(UUID(bytes=schema)))
    return parse_schema(found.schema, client).name
