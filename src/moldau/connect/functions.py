"""Python functions as transforms: `transforms.x.type=python:module.function`.

The function takes a record and returns one, or None to drop it. If it has more parameters, they are
filled by keyword from the transform's other settings (`transforms.x.limit=5` is `limit="5"`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeVar

from moldau.connect.api import ConfigError, ConnectRecord, DataError, Transformation

PREFIX = "python:"
R = TypeVar("R", bound=ConnectRecord)


class FunctionTransform(Transformation):
    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self._name = name
        self._function = function
        self._arguments: dict[str, str] = {}

    @classmethod
    def named(cls, key: str, text: str) -> FunctionTransform:
        """The transform that a setting names; ConfigError if it cannot be imported."""
        path = text.removeprefix(PREFIX).strip().replace(":", ".")
        module, _, name = path.rpartition(".")
        try:
            function = getattr(import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise ConfigError.invalid(
                key,
                text,
                f"the function cannot be imported ({error}): write python:module.function",
            ) from None
        if not callable(function):
            raise ConfigError.invalid(key, text, f"{path} is no function")
        return cls(path, function)

    def configure(self, configs: Mapping[str, Any]) -> None:
        try:
            inspect.signature(self._function).bind(None, **configs)
        except TypeError as error:
            raise ConfigError(
                f"The function {self._name} cannot be called with the settings "
                f"{', '.join(configs) or '(none)'}: {error}"
            ) from None
        self._arguments = dict(configs)

    def apply(self, record: R) -> R | None:
        result = self._function(record, **self._arguments)
        if result is not None and not isinstance(result, type(record)):
            raise DataError(
                f"The function {self._name} returned {type(result).__name__} instead of a record "
                "or None: return record.new_record(...)"
            )
        return result
