"""SchemaGate: judges the batches of a Produce request by the schemas that their records name."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Protocol

from moldau.broker.log.machine.validation import SchemaRules
from moldau.broker.replication.machine.names import TopicKey
from moldau.broker.replication.machine.produced_batch import MalformedRequest, single_batch
from moldau.broker.replication.partition import Partition
from moldau.broker.schemas.lookups import RegistryLookups, RegistrySilent
from moldau.broker.schemas.machine.known import KnownSchemas, SchemaName
from moldau.broker.schemas.machine.settings import Config, registry_settings
from moldau.clock import Clock
from moldau.wire._schema_ids import SchemaIds, schema_ids
from moldau.wire.batch_header import COMPRESSION_MASK, HEADER_SIZE
from moldau.wire.compression import (
    DECOMPRESSED_SIZE_MAX,
    Compression,
    CompressionError,
    DecompressedTooLargeError,
    decompress_to_buffer,
)
from moldau.wire.errors import ApiError, ErrorCode
from moldau.wire.records import read_header

__all__ = ["Inspection", "SchemaGate"]

Topics = Iterable[tuple[TopicKey, list[tuple[int, memoryview | None]]]]
Place = tuple[TopicKey, int]
#: More schemas that are not known in one request are looked up with the next requests.
LOOKUPS_MAX: Final = 100


class Partitions(Protocol):
    def find(self, key: TopicKey, index: int) -> Partition | None: ...


@dataclass(slots=True)
class Inspection:
    """What the batches of one request name, for partitions whose topics ask."""

    named: dict[Place, SchemaIds] = field(default_factory=dict)
    unknown: set[SchemaName] = field(default_factory=set)
    needs_names: bool = False
    silent: str | None = None


class SchemaGate:
    """See the package's README. Without `lookups` there is no registry, and all is refused."""

    def __init__(
        self,
        partitions: Partitions,
        *,
        clock: Clock,
        lookups: RegistryLookups | None,
        missing_ms: int,
    ) -> None:
        self._partitions = partitions
        self._clock = clock
        self._lookups = lookups
        self._known = KnownSchemas(missing_ms=missing_ms)

    @classmethod
    def of(cls, config: Config, partitions: Partitions, clock: Clock) -> SchemaGate:
        """By the broker's keys."""
        lookups = None
        if config["confluent.schema.registry.url"]:
            lookups = RegistryLookups(registry_settings(config))
        missing_ms = config["confluent.missing.id.cache.ttl.sec"] * 1000
        return cls(partitions, clock=clock, lookups=lookups, missing_ms=missing_ms)

    def inspect(self, topics: Topics, version: int) -> Inspection | None:
        """None if no topic of the request asks for validation."""
        inspection: Inspection | None = None
        for key, partitions in topics:
            for index, records in partitions:
                partition = self._partitions.find(key, index)
                if partition is None:
                    continue
                rules = partition.log.rules.schemas
                if rules is None:
                    continue
                inspection = inspection or Inspection()
                self._inspect(inspection, (key, index), partition, rules, records, version)
        return inspection

    def _inspect(
        self,
        inspection: Inspection,
        place: Place,
        partition: Partition,
        rules: SchemaRules,
        records: memoryview | None,
        version: int,
    ) -> None:
        named = _named(records, rules, version)
        # What is not sound is refused by the log.
        if named is None or not named.sound:
            return
        inspection.named[place] = named
        inspection.needs_names |= rules.needs_names
        if self._lookups is not None:
            inspection.unknown |= self._known.unknown(
                partition.topic, rules, named, self._clock.elapsed_ms()
            )

    async def look_up(self, inspection: Inspection) -> None:
        """Ask the registry about what is not known; a silent registry is noted."""
        if self._lookups is None:
            return
        wanted = list(islice(inspection.unknown, LOOKUPS_MAX))
        lookups, with_names = self._lookups, inspection.needs_names
        try:
            found = await asyncio.get_running_loop().run_in_executor(
                lookups.executor, lambda: lookups.look_up(wanted, with_names=with_names)
            )
        except RegistrySilent as error:
            inspection.silent = str(error)
            return
        now_ms = self._clock.elapsed_ms()
        for schema, answer in found.items():
            self._known.learn(schema, answer, now_ms)

    def check(
        self, inspection: Inspection, key: TopicKey, index: int, partition: Partition
    ) -> None:
        """Raises ApiError if the batch is refused."""
        named = inspection.named.get((key, index))
        rules = partition.log.rules.schemas
        if named is None or rules is None:
            return
        if self._lookups is None:
            raise ApiError(
                ErrorCode.INVALID_RECORD,
                f"topic {partition.topic} asks for schema validation, but the broker has no "
                "confluent.schema.registry.url",
            )
        if inspection.silent is not None:
            # Retriable, unlike INVALID_RECORD: the records may be good.
            raise ApiError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"the schema registry does not answer: {inspection.silent}",
            )
        self._known.check(partition.topic, rules, named)

    def close(self) -> None:
        if self._lookups is not None:
            self._lookups.close()


def _named(records: memoryview | None, rules: SchemaRules, version: int) -> SchemaIds | None:
    """The ids of a batch; None for what is malformed, which the append says more about."""
    try:
        batch, attributes = single_batch(records, version)
    except MalformedRequest:
        return None
    if len(batch) < HEADER_SIZE:
        return None
    count = read_header(batch).record_count
    codec = attributes & COMPRESSION_MASK
    section: memoryview | bytearray = batch
    start = HEADER_SIZE
    if codec:
        try:
            section = decompress_to_buffer(
                Compression(codec), batch[HEADER_SIZE:], DECOMPRESSED_SIZE_MAX
            )
        except (ValueError, CompressionError, DecompressedTooLargeError):
            return None
        start = 0
    return schema_ids(section, start, len(section), count, rules.key, rules.value)
