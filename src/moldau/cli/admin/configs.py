"""`moldau configs`: show and change configurations of entities, as kafka-configs does."""

from __future__ import annotations

import argparse
import re

from moldau.cli.admin.config_entities import (
    BROKER_LOGGERS,
    BROKERS,
    CLIENT_METRICS,
    CLIENTS,
    GROUPS,
    IPS,
    TOPICS,
    USERS,
    Entities,
    check_names,
    check_types,
)
from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import add_common, add_json
from moldau.cli.support.config_files import read_config_file
from moldau.cli.support.connecting import open_admin
from moldau.cli.support.failures import ToolError
from moldau.cli.support.machine.errors import Refused
from moldau.cli.support.reporting import message_of
from moldau.client.admin import Admin
from moldau.client.errors import ConfigError, KafkaError, UnsupportedVersionError

__all__ = ["add_arguments", "parse_added", "run"]

# What the short forms stand for, in the order in which Kafka reads them.
_NAMED = {
    "topic": TOPICS,
    "client": CLIENTS,
    "user": USERS,
    "broker": BROKERS,
    "broker_logger": BROKER_LOGGERS,
    "ip": IPS,
    "client_metrics": CLIENT_METRICS,
    "group": GROUPS,
}
_DEFAULTS = {
    "client_defaults": CLIENTS,
    "user_defaults": USERS,
    "broker_defaults": BROKERS,
    "ip_defaults": IPS,
}
_PASSWORD = re.compile(r"password=[^],\s]*")
_KEY = re.compile(r"[$a-zA-Z0-9._-]*")
# Commas and equals signs inside brackets do not separate.
_OUTSIDE_BRACKETS = r"(?=[^\]]*(?:\[|$))"

_EXAMPLES = """\
examples:
  moldau configs --describe --topic orders
  moldau configs --describe --all --broker 1
  moldau configs --alter --topic orders \\
      --add-config retention.ms=86400000,cleanup.policy=[delete,compact]
  moldau configs --alter --topic orders --delete-config retention.ms
  moldau configs --alter --broker-defaults \\
      --add-config log.retention.ms=86400000
  moldau configs --alter --user alice --client app \\
      --add-config producer_byte_rate=1048576
  moldau configs --alter --user alice \\
      --add-config 'SCRAM-SHA-512=[iterations=8192,password=secret]'
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    add_common(parser, controllers=True, required=False)
    parser.add_actions({"--alter": "change configuration", "--describe": "show configuration"})
    parser.add_argument(
        "--all",
        action="store_true",
        help="also show defaults and values from configuration files (describe)",
    )
    entities = parser.add_argument_group("entities")
    entities.add_argument(
        "--entity-type",
        action="append",
        default=[],
        metavar="TYPE",
        help=f"type of the entity: {', '.join(_NAMED.values())}; users and clients can be combined",
    )
    entities.add_argument(
        "--entity-name", action="append", dest="entity_names", default=[], metavar="NAME",
        help="name of the entity",
    )  # fmt: skip
    entities.add_argument(
        "--entity-default",
        action="append_const",
        const="",
        dest="entity_names",
        help="default of all entities of the type (users, clients, brokers, ips)",
    )
    for field, kind in _NAMED.items():
        option = f"--{field.replace('_', '-')}"
        entities.add_argument(
            option, metavar="NAME", help=f"short for --entity-type {kind} --entity-name NAME"
        )
    for field, kind in _DEFAULTS.items():
        option = f"--{field.replace('_', '-')}"
        entities.add_argument(
            option, action="store_true", help=f"short for --entity-type {kind} --entity-default"
        )
    changes = parser.add_argument_group("changes (with --alter)")
    changes.add_argument(
        "--add-config",
        metavar="K=V,K2=[A,B]",
        help="values to set; put a value with commas in brackets",
    )
    changes.add_argument(
        "--add-config-file", metavar="FILE", help="properties file with values to set"
    )
    changes.add_argument(
        "--delete-config", action="append", default=[], metavar="K,...", help="keys to remove"
    )
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    try:
        entities = _check(arguments)
        with open_admin(arguments) as admin:
            if arguments.alter:
                _alter(admin, arguments, entities)
            else:
                _describe(admin, arguments, entities)
    except Refused as error:
        raise ToolError(message_of(error)) from None
    except UnsupportedVersionError as error:
        raise ToolError(message_of(error)) from None
    except (KafkaError, ConfigError) as error:
        given = _PASSWORD.sub("password=[hidden]", " ".join(arguments.given))
        raise ToolError(
            f"Error while executing config command with args '{given}': {message_of(error)}"
        ) from None
    return 0


def _check(arguments: argparse.Namespace) -> Entities:
    parser: Parser = arguments.parser
    if arguments.alter == arguments.describe:
        parser.error("Command must include exactly one action: --describe, --alter")
    parser.refuse(arguments, "--describe", ["--add-config", "--delete-config"])
    if arguments.bootstrap_server is None and arguments.bootstrap_controller is None:
        raise Refused("Either --bootstrap-server or --bootstrap-controller must be specified.")
    named = [field for field in _NAMED if getattr(arguments, field) is not None]
    defaults = [field for field in _DEFAULTS if getattr(arguments, field)]
    types = [
        *arguments.entity_type,
        *(_NAMED[field] for field in named),
        *(_DEFAULTS[field] for field in defaults),
    ]
    names = [
        *arguments.entity_names,
        *(getattr(arguments, field) for field in named),
        *("" for _ in defaults),
    ]
    entities = Entities(tuple(types), tuple(names))
    check_types(entities)
    if (arguments.entity_type or arguments.entity_names) and (named or defaults):
        raise Refused(
            "--entity-{type,name,default} should not be used in conjunction with specific entity "
            "flags"
        )
    check_names(entities, alter=arguments.alter)
    if arguments.alter:
        _check_changes(arguments)
    return entities


def _check_changes(arguments: argparse.Namespace) -> None:
    if arguments.add_config is not None and arguments.add_config_file is not None:
        raise Refused("Only one of --add-config or --add-config-file must be specified")
    if (
        arguments.add_config is None
        and arguments.add_config_file is None
        and not arguments.delete_config
    ):
        raise Refused(
            "At least one of --add-config, --add-config-file, or --delete-config must be "
            "specified with --alter"
        )


def parse_added(text: str) -> dict[str, str]:
    """`k=v,k2=[a,b]`: commas inside brackets do not separate; the brackets are removed."""
    added: dict[str, str] = {}
    for entry in re.split(f",{_OUTSIDE_BRACKETS}", text):
        parts = re.split(rf"\s*=\s*{_OUTSIDE_BRACKETS}", entry)
        if len(parts) != 2:
            raise Refused(
                "requirement failed: Invalid entity config: all configs to be added must be in the "
                'format "key=val" or  "key=[val1,val2]" to group values which contain commas.'
            )
        added[parts[0].strip()] = re.sub(r"[\[\]]", "", parts[1]).strip()
    return added


def _added(arguments: argparse.Namespace) -> dict[str, str]:
    added = {}
    if arguments.add_config_file is not None:
        added = read_config_file(arguments.add_config_file)
    if arguments.add_config is not None:
        added = parse_added(arguments.add_config)
    for key in added:
        if _KEY.fullmatch(key) is None:
            raise Refused(f"Invalid character found for config key: {key}")
    return added


def _alter(admin: Admin, arguments: argparse.Namespace, entities: Entities) -> None:
    from moldau.cli.admin import quota_configs as _quota_configs
    from moldau.cli.admin import resource_configs as _resource_configs

    added = _added(arguments)
    deleted = [key.strip() for entry in arguments.delete_config for key in entry.split(",")]
    if entities.types[0] in (USERS, CLIENTS, IPS):
        _quota_configs.alter(admin, entities, added, deleted)
    else:
        _resource_configs.alter(admin, entities, added, deleted)
    kind, name = entities.types[0], entities.names[0]
    if name:
        print(f"Completed updating config for {kind[:-1]} {name}.")
    else:
        print(f"Completed updating default config for {kind} in the cluster.")


def _describe(admin: Admin, arguments: argparse.Namespace, entities: Entities) -> None:
    from moldau.cli.admin import quota_configs as _quota_configs
    from moldau.cli.admin import resource_configs as _resource_configs

    if entities.types[0] in (USERS, CLIENTS, IPS):
        _quota_configs.describe(admin, entities, as_json=arguments.json)
    else:
        _resource_configs.describe(admin, entities, show_all=arguments.all, as_json=arguments.json)
