"""What a worker knows of a bulk sink that runs: all that its pipeline is made of."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from moldau.connect.api import BulkSinkConnector, BulkTable, Kind
from moldau.connect.machine.ids import TaskId
from moldau.connect.runtime.conversion import SinkConversion
from moldau.connect.runtime.failures import Failures
from moldau.connect.runtime.task import Lifecycle

__all__ = ["BulkJob", "conversion_settings", "table_of"]

_CONVERTERS = ("key.converter", "value.converter", "header.converter")
_CHAIN = ("transforms", "predicates")
_PLUGIN_PATH = "plugin.path"


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkJob:
    """One task of a bulk sink."""

    id: TaskId
    #: The connector's configuration, resolved.
    config: Mapping[str, str]
    table: BulkTable
    #: For `record_to_row`: what converters and transforms need, unresolved.
    settings: str
    #: How clients reach the cluster.
    client: Mapping[str, str]
    #: As in the worker: to find out which columns records have.
    conversion: SinkConversion
    failures: Failures
    life: Lifecycle
    on_topic: Callable[[str], None]


def table_of(
    made: BulkSinkConnector, given: Mapping[str, str], resolved: Mapping[str, str]
) -> BulkTable:
    """Where the rows go. Secrets stay as they are given: the control loop resolves them."""
    secrets = {name for name, key in made.config().items() if key.type is Kind.PASSWORD}
    kept = {key: given[key] for key in given if key in secrets or key.startswith("sink.")}
    return made.table({**resolved, **kept})


def conversion_settings(
    worker: Mapping[str, str], providers: Mapping[str, str], connector: Mapping[str, str]
) -> str:
    """Those of converters, transforms and predicates as JSON; the connector's converters, or the
    worker's where it has none of its own. Variables are resolved where the records are read."""
    found = dict(providers)
    for key in _CONVERTERS:
        found.update(_under(connector if connector.get(key) else worker, key))
    for key in _CHAIN:
        found.update(_under(connector, key))
    if worker.get(_PLUGIN_PATH):
        found[_PLUGIN_PATH] = worker[_PLUGIN_PATH]
    return json.dumps(found, sort_keys=True)


def _under(settings: Mapping[str, str], key: str) -> dict[str, str]:
    return {
        name: value
        for name, value in settings.items()
        if value is not None and (name == key or name.startswith(f"{key}."))
    }
