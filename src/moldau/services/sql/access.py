"""AccessValidator: what the broker's ACLs allow this server, asked before a query is started.

Without it a query without permission would be created, and fail in the background. As in ksqlDB,
`ksql.access.validator.enable` is `on`, `off` or `auto`: where the cluster has an authorizer.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from moldau.client.admin import AclOperation, Admin, ConfigResource, ConfigResourceType
from moldau.client.errors import KafkaError
from moldau.services.sql.machine.errors import FORBIDDEN, KsqlHttpError
from moldau.sql.sources.metastore import MetaStore
from moldau.sql.syntax.statements import (
    CreateAsSelect,
    InsertInto,
    InsertValues,
    PrintTopic,
    Query,
    Statement,
)

__all__ = ["AccessValidator"]

logger = logging.getLogger(__name__)


class AccessValidator:
    def __init__(self, mode: str, admin: Admin) -> None:
        self._mode = mode
        self._admin = admin
        self._enabled: bool | None = {"on": True, "off": False}.get(mode)

    def check(self, statement: Statement, text: str, metastore: MetaStore) -> None:
        """KsqlHttpError with 403 if a topic may not be read or written."""
        reads, writes = _topics(statement, metastore)
        if not (reads or writes) or not self._is_enabled():
            return
        self._check(reads, AclOperation.READ, text)
        self._check(writes, AclOperation.WRITE, text)

    def _check(self, topics: Iterable[str], operation: AclOperation, text: str) -> None:
        names = sorted(set(topics))
        if not names:
            return
        found = self._admin.describe_topics(names, include_authorized_operations=True, check=False)
        denied = []
        for name in names:
            try:
                allowed = found[name].authorized_operations
            except KafkaError as error:
                if "Authorization" in type(error).__name__:
                    denied.append(name)
                # A topic that does not exist is refused for that reason.
                continue
            if allowed is not None and operation not in allowed:
                denied.append(name)
        if denied:
            verb = operation.name.capitalize()
            raise KsqlHttpError(
                403,
                f"Authorization denied to {verb} on topic(s): [{', '.join(denied)}]",
                error_code=FORBIDDEN,
                statement=text,
            )

    def _is_enabled(self) -> bool:
        if self._enabled is None:
            self._enabled = self._has_authorizer()
            logger.info("Topics are checked against ACLs: %s", self._enabled)
        return self._enabled

    def _has_authorizer(self) -> bool:
        try:
            node = next(iter(self._admin.describe_cluster().nodes))
            resource = ConfigResource(ConfigResourceType.BROKER, str(node.id))
            entries = self._admin.describe_configs([resource])[resource]
            return bool(entries["authorizer.class.name"].value)
        except KafkaError as error:
            # Who may not read the configuration is subject to an authorizer.
            return "Authorization" in type(error).__name__


def _topics(statement: Statement, metastore: MetaStore) -> tuple[list[str], list[str]]:
    """The topics that a statement reads and writes, as far as they exist."""
    match statement:
        case Query():
            names = [statement.source.name, *(each.relation.name for each in statement.joins)]
            found = [metastore.source(each) for each in names]
            return [each.topic for each in found if each is not None], []
        case CreateAsSelect():
            sink = metastore.source(statement.name)
            written = [] if sink is None else [sink.topic]
            return _topics(statement.query, metastore)[0], written
        case InsertInto():
            target = metastore.source(statement.target)
            written = [] if target is None else [target.topic]
            return _topics(statement.query, metastore)[0], written
        case InsertValues():
            target = metastore.source(statement.target)
            return [], [] if target is None else [target.topic]
        case PrintTopic():
            return [statement.topic], []
        case _:
            return [], []
