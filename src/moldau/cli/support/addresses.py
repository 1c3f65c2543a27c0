"""Which cluster a command uses if the command line does not name one.

The first of these that is set applies: --bootstrap-server; `bootstrap.servers` in
--command-property or --command-config; MOLDAU_BOOTSTRAP_SERVERS; the profile that MOLDAU_PROFILE
names; the profile in use; the broker that `moldau start` runs on this machine, if there is one on
port 9092 or only one; 127.0.0.1:9092. A profile is used as a whole or not at all: its passwords
are never sent to an address from elsewhere. Kafka's scripts in bin/ use none of this, as in Kafka.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from moldau.cli.support.arguments import Parser, names_option
from moldau.cli.support.failures import Failure
from moldau.cli.support.profiles import Profiles
from moldau.cli.support.running import running_address

__all__ = [
    "DEFAULT_SERVERS",
    "Cluster",
    "cluster_settings",
    "fill_in",
    "named_cluster",
    "relax",
    "running_cluster",
]

DEFAULT_SERVERS = "127.0.0.1:9092"
SERVERS_VARIABLE = "MOLDAU_BOOTSTRAP_SERVERS"
PROFILE_VARIABLE = "MOLDAU_PROFILE"
_OPTION = "--bootstrap-server"
_KEY = "bootstrap.servers"


class Cluster(NamedTuple):
    bootstrap_servers: str
    origin: str  # what to change if no node answers there
    config_file: str | None = None  # further properties of clients


_DEFAULT = Cluster(
    DEFAULT_SERVERS,
    f"This is the default: give {_OPTION}, set {SERVERS_VARIABLE}, or use a profile "
    "(`moldau help profile`).",
)


def named_cluster(environment: Mapping[str, str]) -> Cluster | None:
    """The cluster that the environment or a profile names; None if neither does."""
    if servers := environment.get(SERVERS_VARIABLE, "").strip():
        return Cluster(servers, f"The address is from {SERVERS_VARIABLE}.")
    profiles = Profiles(environment)
    name = environment.get(PROFILE_VARIABLE, "").strip()
    origin = f"The profile is from {PROFILE_VARIABLE}."
    if not name:
        current = profiles.current()
        if current is None:
            return None
        name = current
        origin = "`moldau profile use NAME` chooses another one."
    try:
        servers = profiles.read(name)[_KEY]
    except Failure as failure:
        raise Failure(f"{failure} {origin}") from None
    file = str(profiles.path_of(name))
    return Cluster(servers, f"The address is from the profile {name}.", file)


def running_cluster(environment: Mapping[str, str]) -> Cluster | None:
    """The broker that `moldau start` runs here, if it is clear which one is meant."""
    address = running_address(environment)
    if address is None:
        return None
    return Cluster(address, "A broker of this user listens there; give --bootstrap-server.")


def cluster_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """All properties for clients of the cluster that is named; none if none is."""
    cluster = named_cluster(environment)
    if cluster is None:
        return {}
    settings = {} if cluster.config_file is None else _read(cluster.config_file)
    return settings | {_KEY: cluster.bootstrap_servers}


def relax(parser: Parser) -> None:
    """Let --bootstrap-server be left out, also in subcommands and groups of alternatives."""
    for group in parser._mutually_exclusive_groups:
        if any(_OPTION in action.option_strings for action in group._group_actions):
            group.required = False
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                relax(each)
        elif _OPTION in action.option_strings:
            action.required = False
            if "default" not in (action.help or ""):
                action.help = (
                    f"{action.help} (default: the profile in use, the broker that `moldau start` "
                    f"runs here, or {DEFAULT_SERVERS})"
                )


def fill_in(
    arguments: argparse.Namespace,
    argv: Sequence[str],
    environment: Mapping[str, str],
    *,
    default: bool,
) -> None:
    """Set what the command line left out; `default` is whether 127.0.0.1:9092 may be used.

    A profile is a properties file of a client: without --command-config it takes its place.
    """
    option = _option_of(arguments)
    if option is None or _is_addressed(arguments, option, argv):
        return
    settings = _given_settings(arguments)
    if _KEY in settings:
        setattr(arguments, option.dest, settings[_KEY])
        return
    cluster = named_cluster(environment)
    if cluster is None and default:
        cluster = running_cluster(environment) or _DEFAULT
    if cluster is None:
        return
    setattr(arguments, option.dest, cluster.bootstrap_servers)
    arguments.origin = cluster.origin
    if getattr(arguments, "command_config", "") is None:
        arguments.command_config = cluster.config_file


def _option_of(arguments: argparse.Namespace) -> argparse.Action | None:
    """The option as the tool or its subcommand has it."""
    for parser in (arguments.parser, arguments.tool_parser):
        if (found := parser._option_string_actions.get(_OPTION)) is not None:
            action: argparse.Action = found
            return action
    return None


def _is_addressed(
    arguments: argparse.Namespace, option: argparse.Action, argv: Sequence[str]
) -> bool:
    if any(names_option(word, option) for word in argv):
        return True
    # Controllers instead of brokers; or, in an old form of e2e-latency, an address without a name.
    return bool(getattr(arguments, "bootstrap_controller", None) or getattr(arguments, "words", ()))


def _given_settings(arguments: argparse.Namespace) -> dict[str, str]:
    settings: dict[str, str] = {}
    if file := getattr(arguments, "command_config", None):
        settings.update(_read(file))
    if getattr(arguments, "is_service", False):
        # A service's own file says which cluster is meant.
        if arguments.file is not None:
            settings.update(_read(arguments.file))
        pairs = (each.partition("=") for each in arguments.override)
        settings.update({key.strip(): value.strip() for key, _, value in pairs})
    for entry in getattr(arguments, "command_property", None) or ():
        key, _, value = entry.partition("=")
        settings[key] = value
    return settings


def _read(file: str) -> dict[str, str]:
    # Imported late: most commands name their cluster, or need none.
    from moldau.cli.support.config_files import read_config_file

    return read_config_file(file)
