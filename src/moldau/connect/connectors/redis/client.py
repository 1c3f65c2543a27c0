"""A connection to Redis with the settings that source and sink share."""

from __future__ import annotations

from typing import Any

from moldau.connect.api import ConfigDef, ConnectError, Importance, Kind, RetriableError
from moldau.connect.connectors.support.libraries import library
from moldau.connect.connectors.support.web import plain


def define_redis(config: ConfigDef) -> ConfigDef:
    return (
        config.define("redis.uri", Kind.STRING, "redis://127.0.0.1:6379", group="Redis",
                      importance=Importance.HIGH, doc="redis://HOST:PORT/DB, rediss: with TLS")
        .define("redis.username", Kind.STRING, "", group="Redis", doc="User")
        .define("redis.password", Kind.PASSWORD, None, group="Redis", doc="Its password")
    )  # fmt: skip


class Redis:
    def __init__(self, config: dict[str, Any]) -> None:
        self._driver = library("redis")
        self.client = self._driver.Redis.from_url(
            config["redis.uri"],
            username=config["redis.username"] or None,
            password=plain(config["redis.password"]),
            socket_timeout=30,
            socket_connect_timeout=10,
        )

    def failure(self, error: Exception) -> ConnectError:
        errors = self._driver.exceptions
        away = (
            errors.ConnectionError, errors.TimeoutError, errors.BusyLoadingError,
            errors.ReadOnlyError,
        )  # fmt: skip
        # A wrong password is a ConnectionError too, and stays wrong.
        wrong = isinstance(error, errors.AuthenticationError)
        kind = RetriableError if isinstance(error, away) and not wrong else ConnectError
        return kind(f"Redis: {error}")

    def is_own(self, error: Exception) -> bool:
        return isinstance(error, self._driver.exceptions.RedisError)

    def close(self) -> None:
        self.client.close()
