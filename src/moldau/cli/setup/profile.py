"""`moldau profile`: names clusters, and chooses the one that other commands use."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping

from moldau.cli.support.addresses import DEFAULT_SERVERS, named_cluster
from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import add_json, parse_properties
from moldau.cli.support.config_files import read_config_file
from moldau.cli.support.failures import ToolError
from moldau.cli.support.profiles import Profiles
from moldau.cli.support.tables import Table, aligned, print_json
from moldau.config.suggestions import did_you_mean
from moldau.config.values import ConfigType, Password

__all__ = ["add_arguments", "run"]

_DESCRIPTION = """\
name clusters and choose the one that commands use

A profile is a properties file for clients in ~/.config/moldau/profiles (XDG_CONFIG_HOME replaces
~/.config), with bootstrap.servers and any other property, such as client.id. Commands without
--bootstrap-server use the brokers in MOLDAU_BOOTSTRAP_SERVERS, else the profile that MOLDAU_PROFILE
names, else the profile in use, else 127.0.0.1:9092. The properties of a profile are used as those
of a --command-config file, but never with brokers that the profile does not name. Kafka's scripts
in bin/ do not use profiles."""

_EXAMPLES = """\
examples:
  moldau profile create staging --bootstrap-server kafka1:9092,kafka2:9092
  moldau topics --list                      lists the topics of staging
  moldau profile create local --bootstrap-server 127.0.0.1:9092
  moldau profile create test --command-config client.properties
  moldau profile use staging                use staging again
  MOLDAU_PROFILE=local moldau topics --list
"""


def add_arguments(parser: Parser) -> None:
    parser.description = _DESCRIPTION
    parser.epilog = _EXAMPLES
    commands = parser.add_commands()
    create = commands.add("create", "create a profile and use it")
    create.add_argument("name", metavar="NAME", help="name of the profile")
    create.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        help="addresses of one or more brokers of the cluster",
    )
    create.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="property for clients; may be repeated",
    )
    create.add_argument(
        "--command-config", metavar="FILE", help="properties file whose properties to copy"
    )
    create.add_argument("--replace", action="store_true", help="replace a profile with this name")
    listing = commands.add("list", "list all profiles")
    use = commands.add("use", "use a profile from now on")
    use.add_argument("name", metavar="NAME", help="name of the profile")
    show = commands.add("show", "print a profile's properties; passwords are hidden")
    show.add_argument(
        "name", nargs="?", metavar="NAME", help="name of the profile (default: the profile in use)"
    )
    delete = commands.add("delete", "delete a profile")
    delete.add_argument("name", metavar="NAME", help="name of the profile")
    current = commands.add("current", "print the name of the profile in use")
    for command in (listing, show, current):
        add_json(command)


def run(arguments: argparse.Namespace) -> int:
    profiles = Profiles(os.environ)
    match arguments.command:
        case "create":
            _create(profiles, arguments)
        case "list":
            _list(profiles, arguments)
        case "use":
            profiles.use(arguments.name)
            print(f"Commands now use the profile {arguments.name}.")
        case "show":
            _show(profiles, arguments)
        case "delete":
            profiles.delete(arguments.name)
            print(f"Deleted the profile {arguments.name}.")
        case _:
            return _current(profiles, arguments)
    _warn_of_environment()
    return 0


def _create(profiles: Profiles, arguments: argparse.Namespace) -> None:
    name: str = arguments.name
    path = profiles.path_of(name)
    if path.exists() and not arguments.replace:
        raise ToolError(f"there is a profile {name} already ({path}). --replace replaces it")
    properties: dict[str, str] = {}
    if arguments.command_config is not None:
        properties.update(read_config_file(arguments.command_config))
    properties.update(parse_properties("--set", arguments.set))
    if arguments.bootstrap_server is not None:
        properties["bootstrap.servers"] = arguments.bootstrap_server
    servers = properties.get("bootstrap.servers", "").strip()
    if not servers:
        raise ToolError("a profile needs an address: give --bootstrap-server HOST:PORT")
    _check(properties)
    profiles.write(name, properties)
    profiles.use(name)
    print(f"Created the profile {name} in {path}. Commands now use it: {servers}.")


def _check(properties: Mapping[str, str]) -> None:
    """A wrong address is refused; a key that no client knows may be one of a plug-in."""
    from moldau.client.config.admin_keys import ADMIN_KEYS
    from moldau.client.config.consumer_keys import CONSUMER_KEYS
    from moldau.client.config.producer_keys import PRODUCER_KEYS
    from moldau.client.config.settings import parse_addresses

    addresses = properties["bootstrap.servers"].split(",")
    parse_addresses("bootstrap.servers", [address.strip() for address in addresses])
    known = {*ADMIN_KEYS, *CONSUMER_KEYS, *PRODUCER_KEYS}
    for key in properties:
        if key not in known:
            guess = did_you_mean(key, known)
            print(f"moldau profile: warning: no client knows {key}.{guess}", file=sys.stderr)


def _list(profiles: Profiles, arguments: argparse.Namespace) -> None:
    current = profiles.current()
    rows = [
        {
            "name": name,
            "bootstrapServers": profiles.read(name)["bootstrap.servers"],
            "current": name == current,
        }
        for name in profiles.names()
    ]
    if arguments.json:
        print_json(rows)
        return
    if not rows:
        print(
            "There are no profiles. `moldau profile create NAME --bootstrap-server HOST:PORT` "
            "creates one."
        )
        return
    table = Table("NAME", "BOOTSTRAP-SERVERS", "IN-USE", plain=aligned)
    for row in rows:
        table.add(row["name"], row["bootstrapServers"], "yes" if row["current"] else "-")
    table.show()


def _show(profiles: Profiles, arguments: argparse.Namespace) -> None:
    name = arguments.name or profiles.current()
    if name is None:
        raise ToolError(f"no profile is in use; commands use {DEFAULT_SERVERS}")
    shown = {
        key: Password.HIDDEN if _is_secret(key) else value
        for key, value in profiles.read(name).items()
    }
    if arguments.json:
        print_json(shown)
        return
    print(f"# {profiles.path_of(name)}")
    for key, value in shown.items():
        print(f"{key}={value}")


def _is_secret(key: str) -> bool:
    from moldau.client.config.admin_keys import ADMIN_KEYS

    if key in ADMIN_KEYS:
        return ADMIN_KEYS[key].type is ConfigType.PASSWORD
    return "password" in key or "secret" in key


def _current(profiles: Profiles, arguments: argparse.Namespace) -> int:
    name = profiles.current()
    if arguments.json:
        print_json({"name": name})
    elif name is None:
        print(f"No profile is in use; commands use {DEFAULT_SERVERS}.", file=sys.stderr)
    else:
        print(name)
    _warn_of_environment()
    return 0 if name is not None else 1


def _warn_of_environment() -> None:
    """The environment takes precedence over the profile in use."""
    cluster = named_cluster(os.environ)
    for variable in ("MOLDAU_BOOTSTRAP_SERVERS", "MOLDAU_PROFILE"):
        if cluster is not None and os.environ.get(variable, "").strip():
            print(
                f"moldau profile: {variable} is set and comes first: commands use "
                f"{cluster.bootstrap_servers}",
                file=sys.stderr,
            )
            return
