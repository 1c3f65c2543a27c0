"""`moldau storage`: format and inspect log directories, with kafka-storage's messages.

moldau.broker.metadata.formatting decides what is written.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Sequence
from uuid import UUID

from moldau.broker.config.broker_config import BrokerConfig
from moldau.broker.metadata.machine.acl_model import Acl
from moldau.cli.nodes.configuration import load_config, read_properties, scram_arguments
from moldau.cli.support.failures import Failure
from moldau.config.errors import ConfigError
from moldau.config.properties import load_properties
from moldau.times import WallMs
from moldau.wire.uuids import random_uuid, uuid_to_text

__all__ = [
    "format_folders",
    "new_uuid_text",
    "run_feature_dependencies",
    "run_format",
    "run_info",
    "run_random_uuid",
    "run_version_mapping",
]

_LEVEL = re.compile(r"[+-]?[0-9]{1,5}")


def _new_uuid() -> UUID:
    return random_uuid(os.urandom(16))


def new_uuid_text() -> str:
    return uuid_to_text(_new_uuid())


def run_random_uuid(arguments: argparse.Namespace) -> int:
    print(new_uuid_text())
    return 0


def run_format(arguments: argparse.Namespace) -> int:
    properties = read_properties(arguments.config)
    messages = format_folders(
        load_config(properties),
        arguments.cluster_id,
        release_version=arguments.release_version,
        features=_parse_features(arguments.feature),
        scram=scram_arguments(properties, arguments.add_scram),
        standalone=arguments.standalone,
        initial_controllers=arguments.initial_controllers,
        no_initial_controllers=arguments.no_initial_controllers,
        ignore_formatted=arguments.ignore_formatted,
    )
    for message in messages:
        print(message)
    return 0


def format_folders(
    config: BrokerConfig,
    cluster_id: str,
    *,
    release_version: str | None = None,
    features: dict[str, int] | None = None,
    scram: Sequence[str] = (),
    acls: Sequence[Acl] = (),
    standalone: bool = False,
    initial_controllers: str | None = None,
    no_initial_controllers: bool = False,
    ignore_formatted: bool = False,
) -> list[str]:
    """Format every log directory of the node; returns a line for each."""
    from moldau.broker.log.disk import OsDisk
    from moldau.broker.metadata.formatting import FormatError, format_storage

    try:
        return format_storage(
            config,
            cluster_id,
            release_version=release_version,
            features=features or {},
            scram=list(scram),
            acls=acls,
            standalone=standalone,
            initial_controllers=initial_controllers,
            no_initial_controllers=no_initial_controllers,
            ignore_formatted=ignore_formatted,
            random_uuid=_new_uuid,
            disk=OsDisk(),
            now_ms=WallMs(time.time_ns() // 1_000_000),
        )
    except (FormatError, ConfigError) as error:
        raise Failure(str(error)) from None
    except OSError as error:
        where = error.filename or ", ".join(config.log_dirs)
        raise Failure(f"cannot format {where}: {error.strerror or error}") from None


def _parse_features(entries: Sequence[str]) -> dict[str, int]:
    features: dict[str, int] = {}
    for entry in entries:
        name, separator, level = (part.strip() for part in entry.partition("="))
        if not separator:
            raise Failure(f"Can't parse feature=level string {entry}: equals sign not found.")
        if not _LEVEL.fullmatch(level):
            raise Failure(
                f"Can't parse feature=level string {entry}: unable to parse {level} as a short."
            )
        if name in features:
            raise Failure(f"Feature {name} was specified more than once.")
        features[name] = int(level)
    return features


def run_info(arguments: argparse.Namespace) -> int:
    config = load_config(read_properties(arguments.config))
    folders = sorted(dict.fromkeys((config.metadata_log_dir, *config.log_dirs)))
    found: list[str] = []
    problems: list[str] = []
    metadata: dict[str, str] | None = None
    for folder in folders:
        if not os.path.isdir(folder):
            exists = os.path.exists(folder)
            problems.append(f"{folder} {'is not a directory' if exists else 'does not exist'}")
            continue
        found.append(folder)
        try:
            with open(os.path.join(folder, "meta.properties"), encoding="utf-8") as file:
                own = load_properties(file.read())
        except FileNotFoundError:
            problems.append(f"{folder} is not formatted.")
            continue
        except (OSError, ConfigError, UnicodeDecodeError) as error:
            problems.append(f"Error reading {folder}/meta.properties: {error}")
            continue
        metadata = metadata or own
        if metadata.get("cluster.id") != own.get("cluster.id"):
            problems.append("Mismatched cluster IDs between storage directories.")
        elif metadata.get("node.id") != own.get("node.id"):
            problems.append("Mismatched node IDs between storage directories.")
    _print_info(found, metadata, problems)
    return 1 if problems else 0


def _print_info(found: list[str], metadata: dict[str, str] | None, problems: list[str]) -> None:
    out = sys.stdout
    if found:
        print(f"Found log director{'y' if len(found) == 1 else 'ies'}:", file=out)
        for folder in found:
            print(f"  {folder}", file=out)
        print(file=out)
    if metadata is not None:
        shown = ", ".join(f"{key}={metadata[key]}" for key in sorted(metadata))
        print(f"Found metadata: {{{shown}}}\n", file=out)
    if problems:
        print(f"Found problem{'' if len(problems) == 1 else 's'}:", file=out)
        for problem in problems:
            print(f"  {problem}", file=out)
        print(file=out)


def run_version_mapping(arguments: argparse.Namespace) -> int:
    from moldau.broker.metadata.machine.features import (
        KRAFT_VERSION,
        LATEST_METADATA_VERSION,
        METADATA_VERSION,
        METADATA_VERSION_NAMES,
        SUPPORTED_FEATURES,
        default_features,
        metadata_version_of,
    )

    release = arguments.release_version or METADATA_VERSION_NAMES[LATEST_METADATA_VERSION]
    try:
        version = metadata_version_of(release)
    except ValueError as error:
        raise Failure(str(error)) from None
    print(f"{METADATA_VERSION}={version} ({release})")
    levels = default_features(version)
    # Releases from here on know quorums that can change their voters.
    levels[KRAFT_VERSION] = 1 if version >= metadata_version_of("3.9-IV0") else 0
    for name in SUPPORTED_FEATURES:
        if name != METADATA_VERSION:
            print(f"{name}={levels.get(name, 0)}")
    return 0


def run_feature_dependencies(arguments: argparse.Namespace) -> int:
    from moldau.broker.metadata.machine.features import feature_dependencies

    for entry in arguments.feature:
        name, level = _parse_known_feature(entry)
        needed = feature_dependencies(name, level)
        shown = _feature_text(name, level)
        if not needed:
            print(f"{shown} has no dependencies.")
            continue
        print(f"{shown} requires:")
        for other, other_level in needed.items():
            print(f"    {_feature_text(other, other_level)}")
    return 0


def _parse_known_feature(entry: str) -> tuple[str, int]:
    from moldau.broker.metadata.machine.features import METADATA_VERSION, SUPPORTED_FEATURES

    name, separator, text = (part.strip() for part in entry.partition("="))
    if not separator:
        raise Failure(
            f"Invalid feature format: {entry}. Expected format: 'feature=version' "
            "(e.g. 'group.version=1')"
        )
    if not _LEVEL.fullmatch(text):
        raise Failure(f"Invalid version format: {text} for feature {name}")
    supported = SUPPORTED_FEATURES.get(name)
    if supported is None:
        raise Failure(f"Unknown feature: {name}")
    level = int(text)
    if not supported.min_version <= level <= supported.max_version:
        if name == METADATA_VERSION:
            raise Failure(f"Unknown metadata.version {level}")
        raise Failure(f"Feature level {level} is not supported for feature {name}")
    return name, level


def _feature_text(name: str, level: int) -> str:
    from moldau.broker.metadata.machine.features import METADATA_VERSION, METADATA_VERSION_NAMES

    suffix = f" ({METADATA_VERSION_NAMES[level]})" if name == METADATA_VERSION else ""
    return f"{name}={level}{suffix}"
