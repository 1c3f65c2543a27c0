"""What the options of topics have in common, as a source and as a sink of Spark.

Pure. Invariants: names are compared without regard to case, as Spark does; an option that is wrong
is named, with the nearest right one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from moldau.client.config import CONSUMER_KEYS, PRODUCER_KEYS
from moldau.config.suggestions import closest_name
from moldau.config.variables import is_provider_key

__all__ = ["KAFKA_PREFIX", "Given", "OptionError"]

KAFKA_PREFIX: Final = "kafka."

T = TypeVar("T")


class OptionError(ValueError):
    """An option or a column that is wrong, missing, or does not go with another; the message names
    it."""


class Given:
    """What the user gave, by lower-case name."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._values = {name.lower(): value for name, value in given.items()}

    def names(self) -> list[str]:
        """Without those of the Kafka client."""
        return [name for name in self._values if not name.startswith(KAFKA_PREFIX)]

    def get(self, name: str) -> str | None:
        return self._values.get(name.lower())

    def parsed(self, name: str, parse: Callable[[str], T]) -> T | None:
        text = self.get(name)
        if text is None:
            return None
        try:
            return parse(text.strip())
        except ValueError as error:
            raise OptionError(f"Option '{name}' is '{text}': {error}") from None

    def parsed_or(self, name: str, parse: Callable[[str], T], default: T) -> T:
        value = self.parsed(name, parse)
        return default if value is None else value

    def kafka_settings(self, client: str, refused: Mapping[str, str]) -> dict[str, str]:
        """The client's settings, without their prefix.

        Those of the other kind of client are left out: programs give the same options to a source
        and a sink. A name that no client has is refused only if it looks misspelt.
        """
        own, other = CONSUMER_KEYS, PRODUCER_KEYS
        if client == "producer":
            own, other = other, own
        config = {
            name.removeprefix(KAFKA_PREFIX): value
            for name, value in sorted(self._values.items())
            if name.startswith(KAFKA_PREFIX)
        }
        for name, problem in refused.items():
            if name in config:
                raise OptionError(problem)
        for name in config:
            known = name in own or name in other or is_provider_key(name)
            guess = None if known else closest_name(name, own)
            if guess is not None:
                raise OptionError(
                    f"Unknown option '{KAFKA_PREFIX}{name}'. Did you mean '{KAFKA_PREFIX}{guess}'?"
                )
        if not config.get("bootstrap.servers", "").strip():
            raise OptionError(
                "Option 'kafka.bootstrap.servers' must be specified for configuring Kafka "
                f"{client}, such as 127.0.0.1:9092"
            )
        return {name: value for name, value in config.items() if name in own or name not in other}
