"""Formatting log directories: what `kafka-storage.sh format` writes.

Invariants: nothing is written unless all arguments are valid, and a log directory that is already
formatted is never overwritten. Every log directory gets bootstrap.checkpoint, the records that the
first active controller writes; if the first voters are known, the metadata log directory also gets
a snapshot with them. meta.properties comes last, as its presence means that the directory is ready.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from moldau.broker.config import BrokerConfig
from moldau.broker.log.disk import Disk
from moldau.broker.metadata.machine.acl_model import Acl
from moldau.broker.metadata.machine.features import (
    KRAFT_VERSION,
    LATEST_METADATA_VERSION,
    METADATA_VERSION,
    METADATA_VERSION_NAMES,
    SCRAM_METADATA_VERSION,
    SUPPORTED_FEATURES,
    UnknownRelease,
    default_features,
    feature_dependencies,
    metadata_version_of,
)
from moldau.broker.metadata.machine.scram import ScramError, parse_scram
from moldau.broker.raft.log import METADATA_DIR
from moldau.broker.raft.machine.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet
from moldau.broker.raft.snapshots import BOOTSTRAP_FILE, SnapshotId, read_snapshot, snapshot_parts
from moldau.config.addresses import parse_host_port
from moldau.times import WALL_ZERO, WallMs
from moldau.wire.messages import AccessControlEntryRecord, FeatureLevelRecord
from moldau.wire.uuids import uuid_from_text, uuid_to_text

META_PROPERTIES = "meta.properties"
FORMAT_SNAPSHOT = SnapshotId(0, 0)


class FormatError(Exception):
    """A request to format that cannot be carried out; the message says why and what to do."""


def format_storage(
    config: BrokerConfig,
    cluster_id: str,
    *,
    release_version: str | None = None,
    features: Mapping[str, int] | None = None,
    scram: Sequence[str] = (),
    acls: Sequence[Acl] = (),
    standalone: bool = False,
    initial_controllers: str | None = None,
    no_initial_controllers: bool = False,
    ignore_formatted: bool = False,
    random_uuid: Callable[[], UUID],
    disk: Disk,
    now_ms: WallMs = WALL_ZERO,
) -> list[str]:
    """Format every log directory of `config` that is not formatted yet; the lines to print.

    `initial_controllers` is id@host:port:directory-id, comma-separated; `scram` are --add-scram
    arguments; `acls` are there from the first start on.
    """
    directories = list(dict.fromkeys((*config.log_dirs, config.metadata_log_dir)))
    _check_quorum_flags(config, standalone, initial_controllers, no_initial_controllers)
    voters = _initial_voters(config, standalone, initial_controllers, random_uuid)
    dynamic = not config.quorum.controller_quorum_voters
    levels = _levels(release_version, dict(features or {}), dynamic=dynamic)
    records = _bootstrap_records(levels) + _scram_records(
        scram, levels[METADATA_VERSION], random_uuid
    )
    records += [AccessControlEntryRecord(id=random_uuid(), **acl._asdict()) for acl in acls]
    formatted = _formatted(disk, directories, cluster_id, config.node_id)
    if formatted and not ignore_formatted:
        raise FormatError(
            f"Log directory {formatted[0]} is already formatted. Use --ignore-formatted to ignore"
            " this directory and format the others."
        )
    to_format = [path for path in directories if path not in formatted]
    if not to_format:
        return ["All of the log directories are already formatted."]
    release = METADATA_VERSION_NAMES[levels[METADATA_VERSION]]
    lines = []
    for path in to_format:
        kind = _format_directory(
            path, config, cluster_id, voters, records, levels, random_uuid, disk, now_ms
        )
        lines.append(f"Formatting {kind} {path} with {METADATA_VERSION} {release}.")
    return lines


def default_bootstrap_records(
    metadata_version: int = LATEST_METADATA_VERSION,
) -> list[FeatureLevelRecord]:
    """What a cluster starts with by default."""
    return _bootstrap_records(
        {METADATA_VERSION: metadata_version, **default_features(metadata_version)}
    )


def bootstrap_records(disk: Disk, log_dir: str) -> tuple[Any, ...]:
    """What the first active controller writes: the records of `storage format`, or the defaults."""
    path = f"{log_dir}/{BOOTSTRAP_FILE}"
    if not disk.exists(path):
        return tuple(default_bootstrap_records())
    return read_snapshot(disk, path).records


def _check_quorum_flags(
    config: BrokerConfig,
    standalone: bool,
    initial_controllers: str | None,
    no_initial_controllers: bool,
) -> None:
    flags = [standalone, initial_controllers is not None, no_initial_controllers]
    if sum(flags) > 1:
        raise FormatError(
            "Only one of --standalone, --initial-controllers and --no-initial-controllers can be"
            " used."
        )
    static = bool(config.quorum.controller_quorum_voters)
    if static and (standalone or initial_controllers is not None):
        raise FormatError(
            "You cannot specify controller.quorum.voters and format the node with"
            " --initial-controllers or --standalone. If you want to use dynamic quorum, please"
            " remove controller.quorum.voters and specify controller.quorum.bootstrap.servers"
            " instead."
        )
    if standalone and not config.is_controller:
        raise FormatError("You can only use --standalone on a controller.")
    if config.is_controller and not static and not any(flags):
        raise FormatError(
            "Because controller.quorum.voters is not set on this controller, you must specify one"
            " of the following: --standalone, --initial-controllers, or --no-initial-controllers."
        )


def _initial_voters(
    config: BrokerConfig,
    standalone: bool,
    initial_controllers: str | None,
    random_uuid: Callable[[], UUID],
) -> VoterSet | None:
    if standalone:
        listener = next(iter(config.advertised_controller_listeners), None)
        if listener is None:
            raise FormatError("No controller listeners found.")
        endpoint = VoterEndpoint(
            name=listener.name, host=listener.host or "localhost", port=listener.port
        )
        return VoterSet.of(
            [Voter(key=ReplicaKey(config.node_id, random_uuid()), endpoints=(endpoint,))]
        )
    if initial_controllers is None:
        return None
    name = (config.controller_listener_names or ("CONTROLLER",))[0]
    voters = [_parse_voter(text, name) for text in initial_controllers.split(",") if text.strip()]
    if not voters:
        raise FormatError("--initial-controllers: no voters given")
    if len({voter.key.id for voter in voters}) < len(voters):
        raise FormatError(f"--initial-controllers {initial_controllers} names a node id twice")
    if len({voter.key.directory_id for voter in voters}) < len(voters):
        raise FormatError(f"--initial-controllers {initial_controllers} names a directory id twice")
    return VoterSet.of(voters)


def _parse_voter(text: str, listener_name: str) -> Voter:
    problem = FormatError(
        f"--initial-controllers: {text.strip()!r} is not id@host:port:directory-id, as in"
        " 1@example.com:9093:JEXY6aqzQY-32P5TStzaFg"
    )
    node_text, at, rest = text.strip().partition("@")
    address, colon, directory_text = rest.rpartition(":")
    host_port = parse_host_port(address)
    if not at or not colon or host_port is None or not node_text.isdecimal():
        raise problem
    try:
        directory = uuid_from_text(directory_text)
    except ValueError:
        raise problem from None
    endpoint = VoterEndpoint(name=listener_name, host=host_port.host, port=host_port.port)
    return Voter(key=ReplicaKey(int(node_text), directory), endpoints=(endpoint,))


def _levels(
    release_version: str | None, features: dict[str, int], *, dynamic: bool
) -> dict[str, int]:
    """Every feature's level, checked against each other."""
    if METADATA_VERSION in features and release_version is not None:
        raise FormatError(
            f"Use --release-version instead of --feature {METADATA_VERSION}=X to avoid ambiguity."
        )
    for name, level in features.items():
        supported = SUPPORTED_FEATURES.get(name)
        if supported is None:
            raise FormatError(
                f"Unsupported feature: {name}. Supported features are: "
                + ", ".join(sorted(SUPPORTED_FEATURES))
            )
        if level not in supported:
            raise FormatError(
                f"No feature:{name} with feature level {level}; levels"
                f" {supported.min_version} to {supported.max_version} are supported"
            )
    _check_kraft_version(features.get(KRAFT_VERSION), dynamic=dynamic)
    try:
        metadata_version = features.get(METADATA_VERSION) or (
            LATEST_METADATA_VERSION
            if release_version is None
            else metadata_version_of(release_version)
        )
    except UnknownRelease as error:
        raise FormatError(str(error)) from None
    levels = {METADATA_VERSION: metadata_version}
    levels |= default_features(metadata_version) | features
    levels[KRAFT_VERSION] = features.get(KRAFT_VERSION, 1 if dynamic else 0)
    for name, level in levels.items():
        for needed, at_least in feature_dependencies(name, level).items():
            if levels.get(needed, 0) < at_least:
                raise FormatError(
                    f"{name} could not be set to {level} because it depends on {needed} level"
                    f" {at_least}"
                )
    return levels


def _check_kraft_version(level: int | None, *, dynamic: bool) -> None:
    flags = "--standalone, --initial-controllers, or --no-initial-controllers"
    if level == 0 and dynamic:
        raise FormatError(
            "Cannot set kraft.version to 0 if controller.quorum.voters is empty and one of the"
            f" flags {flags} is used. For dynamic controllers support, try removing the --feature"
            " flag for kraft.version."
        )
    if level is not None and level > 0 and not dynamic:
        raise FormatError(
            f"Cannot set kraft.version to {level} unless controller.quorum.voters is empty and one"
            f" of the flags {flags} is used. For dynamic controllers support, try using one of"
            f" {flags} and removing controller.quorum.voters."
        )


def _bootstrap_records(levels: Mapping[str, int]) -> list[Any]:
    """metadata.version first, then by name; level 0 needs no record, kraft.version has its own."""
    records = [FeatureLevelRecord(name=METADATA_VERSION, feature_level=levels[METADATA_VERSION])]
    records += [
        FeatureLevelRecord(name=name, feature_level=level)
        for name, level in sorted(levels.items())
        if name not in (METADATA_VERSION, KRAFT_VERSION) and level > 0
    ]
    return records


def _scram_records(
    arguments: Sequence[str], metadata_version: int, random_uuid: Callable[[], UUID]
) -> list[Any]:
    if not arguments:
        return []
    if metadata_version < SCRAM_METADATA_VERSION:
        raise FormatError(
            f"SCRAM is only supported in {METADATA_VERSION}"
            f" {METADATA_VERSION_NAMES[SCRAM_METADATA_VERSION]} or later."
        )
    try:
        return [
            parse_scram(argument, lambda: random_uuid().bytes + random_uuid().bytes)
            for argument in arguments
        ]
    except ScramError as error:
        raise FormatError(str(error)) from None


def _formatted(disk: Disk, directories: Sequence[str], cluster_id: str, node_id: int) -> list[str]:
    """Log directories that are formatted already; they must belong to this cluster and node."""
    found = []
    for path in directories:
        file = f"{path}/{META_PROPERTIES}"
        if not disk.exists(file):
            continue
        content = _read_properties(disk.read_bytes(file))
        for key, wanted in (("cluster.id", cluster_id), ("node.id", str(node_id))):
            if content.get(key, wanted) != wanted:
                raise FormatError(
                    f"Invalid {key} in: {file}. Expected {wanted}, but read {content[key]}"
                )
        found.append(path)
    return found


def _read_properties(data: bytes) -> dict[str, str]:
    lines = data.decode(errors="replace").splitlines()
    pairs = (line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return {key.strip(): value.strip() for key, value in pairs}


def _format_directory(
    path: str,
    config: BrokerConfig,
    cluster_id: str,
    voters: VoterSet | None,
    records: Sequence[Any],
    levels: Mapping[str, int],
    random_uuid: Callable[[], UUID],
    disk: Disk,
    now_ms: WallMs,
) -> str:
    """Write one log directory; what kind of directory it is."""
    disk.make_dirs(path)
    directory_id = random_uuid()
    kind = "data directory"
    if path == config.metadata_log_dir:
        kind = "metadata directory"
        if voters is not None:
            kind = "dynamic metadata directory"
            own = voters.voters.get(config.node_id)
            if own is not None:
                kind = "dynamic metadata voter directory"
                directory_id = own.key.directory_id
            _write_voters(path, voters, levels, disk, now_ms)
    parts = snapshot_parts(
        records,
        epoch=0,
        now_ms=now_ms,
        metadata_version=levels[METADATA_VERSION],
        last_contained_log_timestamp=0,
    )
    disk.write_atomic(f"{path}/{BOOTSTRAP_FILE}", b"".join(parts))
    properties = {
        "version": "1",
        "cluster.id": cluster_id,
        "node.id": str(config.node_id),
        "directory.id": uuid_to_text(directory_id),
    }
    text = "#\n" + "".join(f"{key}={value}\n" for key, value in properties.items())
    disk.write_atomic(f"{path}/{META_PROPERTIES}", text.encode())
    return kind


def _write_voters(
    path: str, voters: VoterSet, levels: Mapping[str, int], disk: Disk, now_ms: WallMs
) -> None:
    directory = f"{path}/{METADATA_DIR}"
    disk.make_dirs(directory)
    parts = snapshot_parts(
        (),
        epoch=FORMAT_SNAPSHOT.epoch,
        now_ms=now_ms,
        metadata_version=levels[METADATA_VERSION],
        last_contained_log_timestamp=now_ms,
        kraft_version=levels[KRAFT_VERSION],
        voters=voters,
    )
    disk.write_atomic(f"{directory}/{FORMAT_SNAPSHOT.file_name}", b"".join(parts))
