"""A session with Cassandra, and which of its failures pass."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from moldau.connect.api import ConfigError, ConnectError, RetriableError
from moldau.connect.connectors.support.libraries import library

_CONCURRENT = 64


def _module(name: str) -> Any:
    return library(name, "cassandra-driver", extra="cassandra")


class Cassandra:
    def __init__(
        self,
        hosts: Sequence[str],
        port: int,
        *,
        user: str,
        password: str,
        datacenter: str,
        consistency: str,
        timeout_s: float,
        tls: bool,
        trusted: str | None,
        compression: bool,
    ) -> None:
        cluster = _module("cassandra.cluster")
        self._policies = _module("cassandra.policies")
        self._driver = _module("cassandra")
        self._concurrent = _module("cassandra.concurrent")
        self.unset: object = _module("cassandra.query").UNSET_VALUE
        level = getattr(self._driver.ConsistencyLevel, consistency.upper(), None)
        if not isinstance(level, int):
            raise ConfigError.invalid(
                "cassandra.consistency.level", consistency, "must be such as LOCAL_QUORUM or ONE"
            )
        policy = self._policies
        balanced = (
            policy.DCAwareRoundRobinPolicy(local_dc=datacenter)
            if datacenter
            else policy.RoundRobinPolicy()
        )
        profile = cluster.ExecutionProfile(
            load_balancing_policy=policy.TokenAwarePolicy(balanced),
            consistency_level=level,
            request_timeout=timeout_s,
        )
        options: dict[str, Any] = {
            "port": port,
            "execution_profiles": {cluster.EXEC_PROFILE_DEFAULT: profile},
            "connect_timeout": timeout_s,
            "compression": compression,
        }
        if user:
            auth = import_module("cassandra.auth")
            options["auth_provider"] = auth.PlainTextAuthProvider(user, password)
        if tls:
            options["ssl_context"] = _tls(trusted)
        self._no_host = cluster.NoHostAvailable
        self._options, self._hosts, self._cluster_class = options, list(hosts), cluster.Cluster
        self._cluster: Any = None
        self._session: Any = None
        self._prepared: dict[str, Any] = {}

    @property
    def session(self) -> Any:
        """Made when it is first needed, and again after `close`."""
        if self._session is None:
            self._cluster = self._cluster_class(self._hosts, **self._options)
            try:
                self._session = self._cluster.connect()
            except Exception as error:
                self.close()
                raise self.failure(error, "connecting") from error
        return self._session

    def execute(self, cql: str) -> None:
        try:
            self.session.execute(cql)
        except ConnectError:
            raise
        except Exception as error:
            raise self.failure(error, cql) from error

    def columns(self, keyspace: str, table: str) -> tuple[list[str], list[str]] | None:
        """The columns of a table and those of its primary key; None if there is no such table."""
        self.session  # noqa: B018  The metadata comes with the session.
        found = self._cluster.metadata.keyspaces.get(keyspace)
        if found is None or table not in found.tables:
            return None
        entry = found.tables[table]
        return list(entry.columns), [each.name for each in entry.primary_key]

    def run(self, statements: Sequence[tuple[str, Sequence[Any]]]) -> list[Exception | None]:
        """Run statements side by side; what became of each. A failure that passes is raised."""
        session = self.session
        bound: list[tuple[Any, Any]] = []
        outcome: list[Exception | None] = [None] * len(statements)
        places = []
        for number, (cql, values) in enumerate(statements):
            try:
                bound.append((self._prepare(session, cql).bind(values), ()))
                places.append(number)
            except (TypeError, ValueError, OverflowError) as error:
                outcome[number] = error
            except Exception as error:
                outcome[number] = self._refused(error)
        results = self._concurrent.execute_concurrent(
            session, bound, concurrency=_CONCURRENT, raise_on_first_error=False
        )
        for number, (succeeded, result) in zip(places, results, strict=True):
            if not succeeded:
                outcome[number] = self._refused(result)
        return outcome

    def _refused(self, error: Exception) -> ConnectError:
        found = self.failure(error, "writing")
        if isinstance(found, RetriableError):
            raise found from error
        return found

    def _prepare(self, session: Any, cql: str) -> Any:
        found = self._prepared.get(cql)
        if found is None:
            found = self._prepared[cql] = session.prepare(cql)
        return found

    def forget_statements(self) -> None:
        """After a change of a table."""
        self._prepared.clear()

    def failure(self, error: Exception, what: str) -> ConnectError:
        driver = self._driver
        if isinstance(error, self._no_host):
            inner = list(error.errors.values()) if isinstance(error.errors, dict) else []
            wrong = next(
                (each for each in inner if isinstance(each, driver.AuthenticationFailed)), None
            )
            if wrong is not None:
                return ConnectError(f"Cassandra: {wrong}")
        away = (
            self._no_host, driver.OperationTimedOut, driver.Timeout, driver.Unavailable,
            driver.WriteFailure, driver.CoordinationFailure, ConnectionError,
        )  # fmt: skip
        kind = RetriableError if isinstance(error, away) else ConnectError
        return kind(f"Cassandra: {what} failed: {error}")

    def close(self) -> None:
        cluster, self._cluster, self._session = self._cluster, None, None
        self._prepared.clear()
        if cluster is not None:
            cluster.shutdown()


def _tls(trusted: str | None) -> Any:
    import ssl

    return ssl.create_default_context(cafile=trusted or None)
