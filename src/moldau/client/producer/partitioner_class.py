"""The partitioner that `partitioner.class` names."""

from __future__ import annotations

import importlib
from typing import Any

from moldau.client.errors import ConfigError
from moldau.client.producer.machine.partitioners import (
    RoundRobinPartitioner,
    UniformStickyPartitioner,
    partition_function,
)
from moldau.config.suggestions import did_you_mean

__all__ = ["resolve_partitioner"]

_BUILT_IN: dict[str, type] = {
    "round-robin": RoundRobinPartitioner,
    "roundrobin": RoundRobinPartitioner,
    "org.apache.kafka.clients.producer.RoundRobinPartitioner": RoundRobinPartitioner,
    "uniform-sticky": UniformStickyPartitioner,
    "org.apache.kafka.clients.producer.UniformStickyPartitioner": UniformStickyPartitioner,
}
_DEFAULTS = (
    None,
    "",
    "default",
    "org.apache.kafka.clients.producer.internals.DefaultPartitioner",
)


def resolve_partitioner(setting: Any, config: dict[str, Any]) -> Any:
    """What `partitioner.class` stands for: an object, or None for the built-in one."""
    if isinstance(setting, str) and setting in _BUILT_IN:
        setting = _BUILT_IN[setting]
    if not callable(setting) and setting in _DEFAULTS:
        return None
    if isinstance(setting, str):
        setting = _imported(setting)
    if isinstance(setting, type):
        setting = setting()
    if hasattr(setting, "configure"):
        setting.configure(config)
    if not isinstance(setting, UniformStickyPartitioner):
        partition_function(setting)
    return setting


def _imported(path: str) -> Any:
    module, _, name = path.strip().replace(":", ".").rpartition(".")
    try:
        if not module:
            raise ImportError(f"no such name{did_you_mean(path, _BUILT_IN)}")
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError.invalid(
            "partitioner.class",
            path,
            f"must be round-robin, uniform-sticky or the path of a Python class: {error}",
        ) from error
