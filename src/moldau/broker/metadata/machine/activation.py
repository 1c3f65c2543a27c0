"""What a controller writes first when it becomes the active one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moldau.broker.metadata.machine.configs import MIN_INSYNC_REPLICAS
from moldau.broker.metadata.machine.decision import Decision
from moldau.broker.metadata.machine.features import (
    ELR_VERSION,
    METADATA_VERSION,
    TRANSACTIONS_METADATA_VERSION,
)
from moldau.broker.metadata.machine.model import ResourceType
from moldau.broker.metadata.machine.view import ControllerView
from moldau.wire.messages import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)


def activate(controller: ControllerView, bootstrap: Sequence[Any]) -> Decision[None]:
    """Abort a transaction that the previous controller left open, and write the bootstrap records
    to an empty log."""
    records: list[Any] = []
    if controller.image.in_transaction:
        records.append(AbortTransactionRecord(reason="Controller failover"))
    if METADATA_VERSION not in controller.image.features:
        records += _bootstrap_records(controller, bootstrap)
    return Decision(tuple(records), None)


def _bootstrap_records(controller: ControllerView, bootstrap: Sequence[Any]) -> list[Any]:
    """The records as one metadata transaction, where the metadata version has these."""
    levels = {
        record.name: record.feature_level
        for record in bootstrap
        if isinstance(record, FeatureLevelRecord)
    }
    records = list(bootstrap)
    if levels.get(ELR_VERSION, 0) >= 1:
        # With ELR the minimum decides which replicas are eligible, so it must be the same for all
        # controllers (KIP-966).
        records.append(
            ConfigRecord(
                resource_type=ResourceType.BROKER,
                resource_name="",
                name=MIN_INSYNC_REPLICAS,
                value=str(controller.config.min_insync_replicas),
            )
        )
    if levels.get(METADATA_VERSION, 0) < TRANSACTIONS_METADATA_VERSION:
        return records
    begin = BeginTransactionRecord(name="Bootstrap records")
    return [begin, *records, EndTransactionRecord()]
