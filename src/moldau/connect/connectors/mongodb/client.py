"""A connection to MongoDB with the settings that source and sink share."""

from __future__ import annotations

from typing import Any

from moldau.connect.api import ConfigDef, ConnectError, Importance, Kind, RetriableError
from moldau.connect.connectors.support.libraries import library


def define_mongodb(config: ConfigDef) -> ConfigDef:
    return (
        config.define("connection.uri", Kind.STRING, "mongodb://localhost:27017",
                      importance=Importance.HIGH, group="MongoDB",
                      doc="mongodb://USER:PASSWORD@HOST:PORT/...")
        .define("database", Kind.STRING, "", importance=Importance.HIGH, group="MongoDB",
                doc="Database")
        .define("collection", Kind.STRING, "", importance=Importance.HIGH, group="MongoDB",
                doc="Collection; a sink takes the topic's name if it is empty")
    )  # fmt: skip


class MongoDb:
    def __init__(self, config: dict[str, Any]) -> None:
        self.driver = library("pymongo")
        self.errors = library("pymongo.errors")
        self.json = library("bson.json_util", "pymongo")
        uri = config["connection.uri"]
        options: dict[str, Any] = {"tz_aware": True}
        if "serverselectiontimeoutms=" not in uri.lower():
            options["serverSelectionTimeoutMS"] = 10_000
        self.client: Any = self.driver.MongoClient(uri, **options)

    def failure(self, error: Exception, what: str) -> ConnectError:
        away = (self.errors.ConnectionFailure, self.errors.ExecutionTimeout)
        kind = RetriableError if isinstance(error, away) else ConnectError
        return kind(f"MongoDB: {what} failed: {error}")

    def is_own(self, error: Exception) -> bool:
        return isinstance(error, self.errors.PyMongoError)

    def close(self) -> None:
        self.client.close()
