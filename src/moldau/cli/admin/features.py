"""`moldau features`: describe and change the levels of features, as kafka-features does."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from moldau.broker.metadata.machine.features import (
    KRAFT_VERSION,
    METADATA_VERSION,
    METADATA_VERSION_NAMES,
    SUPPORTED_FEATURES,
    default_features,
    metadata_version_of,
)
from moldau.cli.support.arguments import Parser, int32
from moldau.cli.support.client_options import add_common, add_json
from moldau.cli.support.connecting import open_admin
from moldau.cli.support.failures import ToolError
from moldau.cli.support.machine.errors import Refused
from moldau.cli.support.reporting import message_of, reporting_as
from moldau.cli.support.tables import Table, print_json
from moldau.client.admin import Admin, FeatureUpdate, UpgradeType

__all__ = ["add_arguments", "run"]

# The first release with quorums that can change their voters.
_DYNAMIC_QUORUMS_SINCE = "3.9-IV0"
_SHORT = range(-32768, 32768)

_EXAMPLES = """\
examples:
  moldau features describe
  moldau features upgrade --release-version 4.3 --dry-run
  moldau features version-mapping --release-version 4.0
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    add_common(parser, controllers=True, required=False)
    commands = parser.add_commands()
    describe = commands.add(
        "describe", "show the feature levels that the cluster uses and supports"
    )
    describe.add_argument("--node-id", type=int32, metavar="N", help="node to query (default: any)")
    add_json(describe)
    upgrade = commands.add("upgrade", "raise feature levels")
    downgrade = commands.add("downgrade", "lower feature levels")
    for command, verb in ((upgrade, "raise"), (downgrade, "lower")):
        command.add_argument("--metadata", metavar="RELEASE", help="deprecated: use --feature")
        command.add_argument(
            "--release-version",
            metavar="RELEASE",
            help=f"{verb} all features to the levels of a release",
        )
        _add_feature(command, "NAME=LEVEL", "feature and level")
    disable = commands.add("disable", "disable features, as a downgrade to level 0 does")
    _add_feature(disable, "NAME", "feature")
    for command in (downgrade, disable):
        command.add_argument(
            "--unsafe", action="store_true", help="allow a downgrade that can lose metadata"
        )
    for command in (upgrade, downgrade, disable):
        command.add_argument(
            "--dry-run", action="store_true", help="only check whether it is possible"
        )
    mapping = commands.add("version-mapping", "print the feature levels of a release")
    mapping.add_argument(
        "--release-version",
        metavar="RELEASE",
        help="release, from 3.3-IV3 to 4.3-IV0 (default: 4.3-IV0)",
    )
    dependencies = commands.add(
        "feature-dependencies", "print the features that a feature level depends on"
    )
    _add_feature(dependencies, "NAME=LEVEL", "feature and level", required=True)


def _add_feature(parser: Parser, metavar: str, text: str, *, required: bool = False) -> None:
    parser.add_argument(
        "--feature",
        action="append",
        default=None if required else [],
        required=required,
        metavar=metavar,
        help=f"{text}; may be repeated",
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.command in ("version-mapping", "feature-dependencies"):
        from moldau.cli.nodes import storage

        run_it = {
            "version-mapping": storage.run_version_mapping,
            "feature-dependencies": storage.run_feature_dependencies,
        }[arguments.command]
        return run_it(arguments)
    if arguments.bootstrap_server is None and arguments.bootstrap_controller is None:
        arguments.parser.error(
            "You must specify either --bootstrap-controller or --bootstrap-server"
        )
    with reporting_as(""), open_admin(arguments) as admin:
        if arguments.command == "describe":
            _describe(admin, arguments)
        else:
            _update(admin, arguments, _updates(arguments))
    return 0


# Describe.


def _describe(admin: Admin, arguments: argparse.Namespace) -> None:
    if arguments.node_id is not None and arguments.node_id < 0:
        raise Refused(f"Invalid node id {arguments.node_id}: must be non-negative.")
    found = admin.describe_features(node_id=arguments.node_id)
    epoch = found.finalized_features_epoch
    rows = []
    for name in sorted(found.supported_features):
        supported = found.supported_features[name]
        finalized = found.finalized_features.get(name)
        level = 0 if finalized is None else finalized.max_version_level
        rows.append((name, supported.min_version, supported.max_version, level))
    if arguments.json:
        keys = ("feature", "supportedMinVersion", "supportedMaxVersion", "finalizedVersionLevel")
        print_json([{**dict(zip(keys, row, strict=True)), "epoch": epoch} for row in rows])
        return
    table = Table(
        "Feature",
        "SupportedMinVersion",
        "SupportedMaxVersion",
        "FinalizedVersionLevel",
        "Epoch",
        plain=_plain,
    )
    for name, *levels in rows:
        shown = (_level_text(name, level) for level in levels)
        table.add(name, *shown, "-" if epoch is None else epoch)
    table.show()


def _plain(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for name, low, high, level, epoch in rows:
        yield (
            f"Feature: {name:<40}  SupportedMinVersion: {low:<15}  SupportedMaxVersion: {high:<15}"
            f"  FinalizedVersionLevel: {level:<15}  Epoch: {epoch}"
        )


def _level_text(name: str, level: int) -> str:
    if name != METADATA_VERSION:
        return str(level)
    return METADATA_VERSION_NAMES.get(level, f"UNKNOWN {level}")


# Change.


def _updates(arguments: argparse.Namespace) -> dict[str, FeatureUpdate]:
    kind = UpgradeType.UPGRADE
    if arguments.command != "upgrade":
        unsafe = arguments.unsafe
        kind = UpgradeType.UNSAFE_DOWNGRADE if unsafe else UpgradeType.SAFE_DOWNGRADE
    levels: dict[str, int] = {}
    if arguments.command == "disable":
        for name in arguments.feature:
            _add_level(levels, name, 0)
    elif arguments.release_version is not None:
        if arguments.metadata is not None or arguments.feature:
            raise Refused("Can not specify `release-version` with other feature flags.")
        levels = _levels_of_release(arguments.release_version, kind)
    else:
        if arguments.metadata is not None:
            print(" `metadata` flag is deprecated and may be removed in a future release.")
            levels[METADATA_VERSION] = _metadata_version(arguments.metadata)
        for entry in arguments.feature:
            _add_level(levels, *_name_and_level(entry))
    if not levels:
        raise Refused(f"You must specify at least one feature to {arguments.command}")
    return {name: FeatureUpdate(level, kind) for name, level in levels.items()}


def _levels_of_release(release: str, kind: UpgradeType) -> dict[str, int]:
    version = _metadata_version(release)
    levels = {METADATA_VERSION: version}
    defaults = default_features(version)
    since = metadata_version_of(_DYNAMIC_QUORUMS_SINCE)
    defaults[KRAFT_VERSION] = 1 if version >= since else 0
    for name in SUPPORTED_FEATURES:
        level = defaults.get(name, 0)
        # An upgrade to level 0 is not an upgrade.
        if name != METADATA_VERSION and (kind is not UpgradeType.UPGRADE or level > 0):
            levels[name] = level
    return levels


def _metadata_version(release: str) -> int:
    try:
        return metadata_version_of(release)
    except ValueError as error:
        raise Refused(str(error)) from None


def _add_level(levels: dict[str, int], name: str, level: int) -> None:
    if name in levels:
        raise Refused(f"Feature {name} was specified more than once.")
    levels[name] = level


def _name_and_level(entry: str) -> tuple[str, int]:
    name, equals, text = (part.strip() for part in entry.partition("="))
    if not equals:
        raise Refused(f"Can't parse feature=level string {entry}: equals sign not found.")
    try:
        level = int(text)
    except ValueError:
        level = _SHORT.stop
    if level not in _SHORT:
        raise Refused(
            f"Can't parse feature=level string {entry}: unable to parse {text} as a short."
        )
    return name, level


def _update(admin: Admin, arguments: argparse.Namespace, updates: dict[str, FeatureUpdate]) -> None:
    operation = arguments.command
    dry_run = arguments.dry_run
    results = admin.update_features(updates, validate_only=dry_run, check=False)
    for name in sorted(updates):
        level = updates[name].max_version_level
        error = results.errors.get(name)
        if error is not None:
            target = (
                f"disable {name}" if operation == "disable" else f"{operation} {name} to {level}"
            )
            print(f"{'Can not' if dry_run else 'Could not'} {target}. {message_of(error)}")
        else:
            done = "disabled." if operation == "disable" else f"{operation}d to {level}."
            print(f"{name} {'can be' if dry_run else 'was'} {done}")
    if results.errors:
        raise ToolError(f"{len(results.errors)} out of {len(updates)} operation(s) failed.")
