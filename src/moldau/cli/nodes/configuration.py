"""A BrokerConfig from files and --override, and the configuration of a node without a file."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from moldau.broker.config.broker_config import BrokerConfig
from moldau.broker.config.broker_keys import BROKER_KEYS
from moldau.cli.support.failures import Failure
from moldau.config.errors import ConfigError
from moldau.config.properties import load_properties
from moldau.config.providers import resolve
from moldau.config.suggestions import did_you_mean
from moldau.config.values import ConfigType
from moldau.config.variables import variables_in

__all__ = [
    "DEFAULT_DATA",
    "DEFAULT_PORT",
    "load_config",
    "parse_overrides",
    "read_properties",
    "scram_arguments",
    "standalone_properties",
    "warn_of_ignored_keys",
]

DEFAULT_PORT = 9092
DEFAULT_DATA = "moldau-data"


def standalone_properties(*, port: int, data: str) -> dict[str, str]:
    """A node that is broker and controller at once, for this machine only.

    The system chooses the controller's port: no other node joins, and a second node started on the
    next port must not collide with it.
    """
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "127.0.0.1:0",
        "log.dirs": data,
        # One node cannot hold the three replicas these topics have by default.
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        # The system sizes socket buffers better than a constant does: half the CPU per byte.
        "socket.receive.buffer.bytes": "-1",
        "socket.send.buffer.bytes": "-1",
        # More members are not likely to join a first group: do not wait for them.
        "group.initial.rebalance.delay.ms": "0",
    }


def read_properties(path: str) -> dict[str, str]:
    """The properties of a file; any problem is a Failure naming it."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return load_properties(file.read())
    except FileNotFoundError:
        raise Failure(f"no such configuration file: {path}") from None
    except OSError as error:
        raise Failure(f"cannot read the configuration file {path}: {error.strerror}") from None
    except ConfigError as error:
        raise Failure(f"{path}: {error}") from None


def parse_overrides(overrides: Sequence[str]) -> dict[str, str]:
    """The settings of --override KEY=VALUE; the last one applies."""
    texts: dict[str, str] = {}
    for override in overrides:
        key, separator, value = override.partition("=")
        if not separator or not key.strip():
            raise Failure(f"--override {override}: expected key=value")
        texts[key.strip()] = value
    return texts


def load_config(properties: Mapping[str, str], overrides: Sequence[str] = ()) -> BrokerConfig:
    """The checked configuration; a wrong value is a Failure."""
    given = parse_overrides(overrides)
    _warn_of_visible_passwords(given)
    try:
        return BrokerConfig.from_properties(resolve({**properties, **given}))
    except ConfigError as error:
        raise Failure(str(error)) from None


def scram_arguments(properties: Mapping[str, str], given: Sequence[str]) -> list[str]:
    """The values of --add-scram, with what the node's config.providers have for their variables."""
    named = {f"--add-scram {number}": text for number, text in enumerate(given)}
    try:
        resolved = resolve({**properties, **named})
    except ConfigError as error:
        raise Failure(str(error)) from None
    return [str(resolved[name]) for name in named]


def _warn_of_visible_passwords(overrides: Mapping[str, str]) -> None:
    """What is on a command line is in the list of processes, for everybody to read."""
    for name, value in overrides.items():
        # A listener's key, and a mechanism's, end with the key itself.
        parts = name.split(".")
        tails = (".".join(parts[start:]) for start in range(len(parts)))
        key = next((BROKER_KEYS[tail] for tail in tails if tail in BROKER_KEYS), None)
        if key is not None and key.type is ConfigType.PASSWORD and not variables_in(value):
            print(
                f"moldau: warning: --override {name}: every user of this machine can read the "
                "command line. Set it in the configuration file, or use config.providers",
                file=sys.stderr,
            )


def warn_of_ignored_keys(config: BrokerConfig) -> None:
    """Kafka ignores keys it does not know; a misspelled one should still be noticed.

    What is known and changes nothing here is named in one line.
    """
    for name in config.unknown:
        guess = did_you_mean(name, BROKER_KEYS)
        print(
            f"moldau: warning: the configuration key {name} is unknown and has no effect.{guess}",
            file=sys.stderr,
        )
    if names := config.without_effect:
        print(
            f"moldau: warning: these settings have no effect: {', '.join(names)}. "
            "docs/configuration.md has the reasons",
            file=sys.stderr,
        )
