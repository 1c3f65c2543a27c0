"""The cluster's metadata as a tree of directories and files, in the layout of Kafka's shell.

    /image/{acls,clientQuotas,cluster,configs,delegationToken,features,producerIds,provenance,
            scram,topics}
    /local/{commitId,version}

Children are created on demand: an image may have a hundred thousand partitions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from moldau import __version__
from moldau.broker.metadata.machine.features import METADATA_VERSION, METADATA_VERSION_NAMES
from moldau.broker.metadata.machine.image import MetadataImage, QuotaEntity
from moldau.broker.metadata.machine.model import (
    Broker,
    ControllerNode,
    Endpoint,
    Partition,
    ResourceType,
    Topic,
    VersionRange,
)
from moldau.cli.support.machine.java_text import java_double
from moldau.client.admin.acl_values import (
    AclOperation,
    AclPermissionType,
    PatternType,
)
from moldau.client.admin.acl_values import ResourceType as AclResourceType
from moldau.wire.uuids import uuid_to_text

__all__ = ["Directory", "Found", "Provenance", "find_nodes", "print_node", "root_of", "split_path"]

_SECURITY_PROTOCOLS = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}
_SCRAM_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_VERSION_MAX = 32767
_ESCAPED = re.compile(r"[\\()]")

_T = TypeVar("_T")


class Directory:
    """Names, and what each leads to: a Directory or a file's text."""

    def __init__(self, items: Mapping[str, Any], make: Callable[[Any], Node]) -> None:
        self._items = items
        self._make = make

    @property
    def names(self) -> list[str]:
        return sorted(self._items)

    def child(self, name: str) -> Node | None:
        return self._make(self._items[name]) if name in self._items else None


Node = Directory | str


@dataclass(frozen=True, slots=True)
class Provenance:
    """Up to where the log was read."""

    offset: int = -1
    epoch: int = -1
    time_ms: int = -1

    def __str__(self) -> str:
        return f"offset {self.offset}, epoch {self.epoch}, time {_iso_time(self.time_ms)}"


def root_of(image: MetadataImage, provenance: Provenance) -> Directory:
    """The tree of one image."""
    parts: dict[str, Callable[[], Node]] = {
        "acls": lambda: _directories(byId=lambda: _acls(image)),
        "clientQuotas": lambda: _quotas(image),
        "cluster": lambda: _directories(
            brokers=lambda: Directory(_by_text(image.brokers), _broker_text),
            controllers=lambda: Directory(_by_text(image.controllers), _controller_text),
        ),
        "configs": lambda: _configs(image),
        "delegationToken": lambda: Directory(image.tokens, _token_text),
        "features": lambda: _features(image),
        "producerIds": lambda: _texts({"nextProducerId": str(image.next_producer_id)}),
        "provenance": lambda: str(provenance),
        "scram": lambda: _scram(image),
        "topics": lambda: _directories(
            byId=lambda: Directory(
                {uuid_to_text(key): topic for key, topic in image.topics_by_id.items()}, _topic
            ),
            byName=lambda: Directory(image.topics_by_name, _topic),
        ),
    }
    return _directories(
        image=lambda: _directories(**parts),
        local=lambda: _texts({"commitId": "unknown", "version": __version__}),
    )


def _directories(**parts: Callable[[], Node]) -> Directory:
    return Directory(parts, lambda make: make())


def _texts(items: Mapping[str, str]) -> Directory:
    return Directory(items, str)


def _by_text(items: Mapping[int, _T]) -> dict[str, _T]:
    return {str(key): value for key, value in items.items()}


# The parts of an image.


def _acls(image: MetadataImage) -> Directory:
    def text(record: Any) -> str:
        return (
            f"StandardAcl[resourceType={AclResourceType(record.resource_type).name}"
            f", resourceName={record.resource_name}"
            f", patternType={PatternType(record.pattern_type).name}"
            f", principal={record.principal}, host={record.host}"
            f", operation={AclOperation(record.operation).name}"
            f", permissionType={AclPermissionType(record.permission_type).name}]"
        )

    return Directory({uuid_to_text(key): record for key, record in image.acls.items()}, text)


def _quotas(image: MetadataImage) -> Directory:
    return Directory(
        {_entity_name(entity): quotas for entity, quotas in image.quotas.items()},
        lambda quotas: _texts({key: java_double(value) for key, value in quotas.items()}),
    )


_ENTITY_WORDS = {"client-id": "clientId", "ip": "ip", "user": "user"}


def _entity_name(entity: QuotaEntity) -> str:
    """`clientId(a)_user(b)`. A default entity has no name and adds nothing."""
    names = dict(entity)
    parts = []
    for kind, word in _ENTITY_WORDS.items():
        name = names.get(kind)
        if name is not None:
            parts.append(f"{word}({re.sub(_ESCAPED, _escape, name)})")
    return "_".join(parts)


def _escape(match: re.Match[str]) -> str:
    return "\\" + match[0]


def _configs(image: MetadataImage) -> Directory:
    named = {}
    for (kind, name), values in image.configs.items():
        kind_name = ResourceType(kind).name
        named[f"{kind_name}:{name}" if name else kind_name] = values
    return Directory(named, _texts)


def _features(image: MetadataImage) -> Directory:
    level = image.features.get(METADATA_VERSION)
    # As Java shows what may be missing.
    version = "Optional.empty"
    if level is not None:
        version = f"Optional[{METADATA_VERSION_NAMES.get(level, str(level))}]"
    finalized = {
        f"finalized_{name}": str(level)
        for name, level in image.features.items()
        if name != METADATA_VERSION
    }
    return _texts({"metadataVersion": version, **finalized})


def _scram(image: MetadataImage) -> Directory:
    users: dict[str, dict[str, object]] = {name: {} for name in _SCRAM_MECHANISMS.values()}
    for (mechanism, user), record in image.scram.items():
        users[_SCRAM_MECHANISMS[mechanism]][user] = record
    return Directory(users, lambda records: Directory(records, _scram_text))


def _topic(topic: Topic) -> Directory:
    texts: dict[str, str | Partition] = {"id": uuid_to_text(topic.id), "name": topic.name}
    texts.update(_by_text(topic.partitions))
    return Directory(texts, lambda part: part if isinstance(part, str) else _partition_text(part))


# Files.


def _broker_text(broker: Broker) -> str:
    rack = "Optional.empty" if broker.rack is None else f"Optional[{broker.rack}]"
    return (
        f"BrokerRegistration(id={broker.id}, epoch={broker.epoch}"
        f", incarnationId={uuid_to_text(broker.incarnation_id)}"
        f", listeners=[{_endpoints(broker.endpoints)}]"
        f", supportedFeatures={{{_version_ranges(broker.features)}}}, rack={rack}"
        f", fenced={_flag(broker.fenced)}"
        f", inControlledShutdown={_flag(broker.in_controlled_shutdown)}"
        f", isMigratingZkBroker={_flag(broker.is_migrating_zk_broker)}"
        f", directories={_list(map(uuid_to_text, broker.log_dirs))}"
        f", cordonedDirectories={_list(map(uuid_to_text, broker.cordoned_log_dirs))})"
    )


def _controller_text(controller: ControllerNode) -> str:
    return (
        f"ControllerRegistration(id={controller.id}"
        f", incarnationId={uuid_to_text(controller.incarnation_id)}"
        f", zkMigrationReady={_flag(controller.zk_migration_ready)}"
        f", listeners=[{_endpoints(controller.endpoints)}]"
        f", supportedFeatures={{{_version_ranges(controller.features)}}})"
    )


def _partition_text(partition: Partition) -> str:
    return (
        f"PartitionRegistration(replicas={_list(partition.replicas)}"
        f", directories={_list(map(uuid_to_text, partition.directories))}"
        f", isr={_list(partition.isr)}"
        f", removingReplicas={_list(partition.removing_replicas)}"
        f", addingReplicas={_list(partition.adding_replicas)}"
        f", elr={_list(partition.elr)}, lastKnownElr={_list(partition.last_known_elr)}"
        f", leader={partition.leader}"
        f", leaderRecoveryState={partition.leader_recovery_state.name}"
        f", leaderEpoch={partition.leader_epoch}, partitionEpoch={partition.partition_epoch})"
    )


def _scram_text(record: Any) -> str:
    return (
        f"ScramCredentialData(salt={record.salt.hex()}, storedKey={record.stored_key.hex()}"
        f", serverKey={record.server_key.hex()}, iterations={record.iterations})"
    )


def _token_text(record: Any) -> str:
    # The brackets are Kafka's.
    return (
        f"DelegationTokenDatatokenId={record.token_id}(owner={record.owner}"
        f"(tokenRequester={record.requester}(renewers={' '.join(record.renewers)}"
        f", issueTimestamp={record.issue_timestamp}, maxTimestamp={record.max_timestamp})"
        f", expiryTimestamp={record.expiration_timestamp}"
    )


def _endpoints(endpoints: Sequence[Endpoint]) -> str:
    return ", ".join(
        f"Endpoint(listenerName='{each.name}'"
        f", securityProtocol={_SECURITY_PROTOCOLS.get(each.security_protocol, 'UNKNOWN')}"
        f", host='{each.host}', port={each.port})"
        for each in sorted(endpoints, key=lambda each: each.name)
    )


def _version_ranges(features: Mapping[str, VersionRange]) -> str:
    return ", ".join(f"{name}: {_version_range(features[name])}" for name in sorted(features))


def _version_range(versions: VersionRange) -> str:
    if versions.min_version == versions.max_version:
        return str(versions.min_version)
    if versions.max_version == _VERSION_MAX:
        return f"{versions.min_version}+"
    return f"{versions.min_version}-{versions.max_version}"


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _list(values: Iterable[object]) -> str:
    return f"[{', '.join(map(str, values))}]"


def _iso_time(time_ms: int) -> str:
    seconds, millis = divmod(time_ms, 1000)
    moment = datetime.fromtimestamp(seconds, UTC)
    text = f"{moment:%Y-%m-%dT%H:%M:%S}"
    fraction = f".{millis:03}".rstrip("0") if millis else ""
    return f"{text}{fraction}Z[UTC]"


# Walking.


@dataclass(frozen=True, slots=True)
class Found:
    path: tuple[str, ...]
    node: Node

    @property
    def name(self) -> str:
        return self.path[-1] if self.path else "/"

    @property
    def absolute(self) -> str:
        return "/" + "/".join(self.path)


def split_path(path: str, working_directory: str = "/") -> list[str]:
    """The parts of a path from the root, with . and .. resolved."""
    parts: list[str] = []
    for part in (path if path.startswith("/") else f"{working_directory}/{path}").split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return parts


def find_nodes(root: Directory, pattern: str, working_directory: str = "/") -> Iterator[Found]:
    """The nodes that a glob with *, ? and {a,b} matches, in the order of names."""
    yield from _match(root, split_path(pattern, working_directory), ())


def _match(node: Node, parts: Sequence[str], path: tuple[str, ...]) -> Iterator[Found]:
    if not parts:
        yield Found(path, node)
        return
    if isinstance(node, str):
        return
    expression = _expression(parts[0])
    names = [parts[0]] if expression is None else filter(expression.fullmatch, node.names)
    for name in names:
        child = node.child(name)
        if child is not None:
            yield from _match(child, parts[1:], (*path, name))


def _expression(glob: str) -> re.Pattern[str] | None:
    """A regular expression for a glob; None for a plain name or an invalid glob."""
    output: list[str] = []
    in_group = False
    plain = True
    letters = iter(glob)
    for letter in letters:
        if letter in "?*{" or (in_group and letter in ",}"):
            plain = False
            if letter == "{" and in_group:
                return None
            output.append({"?": ".", "*": ".*", "{": "(?:", ",": "|", "}": ")"}[letter])
            in_group = letter in "{," if letter in "{,}" else in_group
        elif letter == "\\":
            output.append(re.escape(next(letters, "\\")))
        else:
            output.append(re.escape(letter))
    return None if plain or in_group else re.compile("".join(output))


def print_node(node: Node, write: Callable[[str], None], depth: int = 0) -> None:
    """A file's text; a directory with all below it, indented."""
    indent = "  " * depth
    if isinstance(node, str):
        write(f"{indent}{node}")
        return
    for name in node.names:
        write(f"{indent}{name}:")
        child = node.child(name)
        if child is not None:
            print_node(child, write, depth + 1)
