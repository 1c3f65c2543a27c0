"""What became of each part of an operation on several things."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from moldau.client.errors import KafkaError

__all__ = ["Results"]

K = TypeVar("K")
V = TypeVar("V")


class Results(Mapping[K, V], Generic[K, V]):
    """A mapping from each thing to its result; asking for one that failed raises its error."""

    __slots__ = ("_errors", "_values")

    def __init__(self, values: Mapping[K, V], errors: Mapping[K, KafkaError]) -> None:
        self._values = dict(values)
        self._errors = dict(errors)

    @property
    def values_by_key(self) -> dict[K, V]:
        """Those that succeeded."""
        return self._values

    @property
    def errors(self) -> dict[K, KafkaError]:
        """Those that failed."""
        return self._errors

    def __getitem__(self, key: K) -> V:
        error = self._errors.get(key)
        if error is not None:
            raise error
        return self._values[key]

    def __iter__(self) -> Iterator[K]:
        yield from self._values
        yield from self._errors

    def __len__(self) -> int:
        return len(self._values) + len(self._errors)

    def __contains__(self, key: object) -> bool:
        return key in self._values or key in self._errors

    def __repr__(self) -> str:
        return f"Results({self._values!r}, errors={self._errors!r})"

    def check(self) -> Results[K, V]:
        """Itself if all went well; else raises the first error, with all results in it."""
        for error in self._errors.values():
            error.results = self
            raise error
        return self
