"""`moldau acls`: add, remove and list access control lists, as kafka-acls does."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterable, Mapping

from moldau.cli.support.arguments import Parser
from moldau.cli.support.client_options import add_common, add_json
from moldau.cli.support.connecting import open_admin
from moldau.cli.support.machine.errors import Refused
from moldau.cli.support.reporting import reporting_as
from moldau.cli.support.tables import Table, on_terminal, print_json
from moldau.client.admin import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    Admin,
    KafkaPrincipal,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from moldau.client.errors import UnsupportedVersionError

__all__ = ["SUPPORTED", "add_arguments", "entries_of", "operation_named", "resources_of", "run"]

_ACTIONS = ("--list", "--add", "--remove")
_ALL_HOSTS = "*"
_CLUSTER = ResourcePatternFilter(ResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL)
_RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
    "delegation_token": ResourceType.DELEGATION_TOKEN,
    "user_principal": ResourceType.USER,
}
#: What can be allowed on each kind of resource, beside ALL.
SUPPORTED: dict[ResourceType, tuple[AclOperation, ...]] = {
    ResourceType.TOPIC: (
        AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE, AclOperation.DESCRIBE,
        AclOperation.DELETE, AclOperation.ALTER, AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DELETE,
        AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        AclOperation.CREATE, AclOperation.CLUSTER_ACTION, AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS, AclOperation.IDEMPOTENT_WRITE, AclOperation.ALTER,
        AclOperation.DESCRIBE,
    ),
    ResourceType.TRANSACTIONAL_ID: (
        AclOperation.DESCRIBE, AclOperation.WRITE, AclOperation.TWO_PHASE_COMMIT,
    ),
    ResourceType.DELEGATION_TOKEN: (AclOperation.DESCRIBE,),
    ResourceType.USER: (AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
}  # fmt: skip

Acls = dict[ResourcePatternFilter, list[AccessControlEntry]]


def _pascal(operation: AclOperation) -> str:
    return operation.name.title().replace("_", "")


_NAMED = {
    _pascal(each).upper(): each
    for each in AclOperation
    if each not in (AclOperation.UNKNOWN, AclOperation.ANY)
}


def operation_named(name: str) -> AclOperation:
    """By Kafka's name in whatever case; UNKNOWN for any other."""
    return _NAMED.get(name.strip().upper(), AclOperation.UNKNOWN)


_EXAMPLES = """\
examples:
  moldau acls --add --allow-principal User:alice --operation Read --topic orders
  moldau acls --add --allow-principal User:shop --producer --topic orders
  moldau acls --list --topic orders
  moldau acls --remove --topic orders --force
"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = _EXAMPLES
    add_common(parser, controllers=True)
    parser.add_actions(
        {
            "--add": "add access control lists",
            "--remove": "remove access control lists",
            "--list": "list access control lists",
        }
    )
    resources = parser.add_argument_group("resources")
    _repeated(resources, "--topic", "NAME", "topic; * for all")
    _repeated(resources, "--group", "NAME", "consumer group; * for all")
    _repeated(resources, "--transactional-id", "NAME", "transactional ID; * for all")
    _repeated(resources, "--delegation-token", "NAME", "delegation token; * for all")
    _repeated(resources, "--user-principal", "TYPE:NAME", "user, for their delegation tokens")
    resources.add_argument("--cluster", action="store_true", help="the cluster")
    kinds = [each.name.lower() for each in PatternType if each is not PatternType.UNKNOWN]
    resources.add_argument(
        "--resource-pattern-type",
        type=str.lower,
        choices=kinds,
        default="literal",
        help="type of the pattern that the names are; any and match (all patterns that match the "
        "name) only with --list and --remove (default: literal)",
    )
    operations = ", ".join(map(_pascal, _NAMED.values()))
    text = f"operation: {operations} (default: All); may be repeated"
    _repeated(parser, "--operation", "NAME", text)
    _repeated(
        parser,
        "--allow-principal",
        "TYPE:NAME",
        "principal that is allowed the operation; may be repeated",
    )
    _repeated(
        parser,
        "--deny-principal",
        "TYPE:NAME",
        "principal that is denied the operation; may be repeated",
    )
    _repeated(parser, "--allow-host", "HOST", "host from which it is allowed (default: *)")
    _repeated(parser, "--deny-host", "HOST", "host from which it is denied (default: *)")
    _repeated(parser, "--principal", "TYPE:NAME", "list only entries of this principal")
    parser.add_argument(
        "--producer",
        action="store_true",
        help="operations that a producer needs: Write, Describe and Create on topics",
    )
    parser.add_argument(
        "--consumer",
        action="store_true",
        help="operations that a consumer needs: Read and Describe on topics, Read on groups",
    )
    parser.add_argument(
        "--idempotent",
        action="store_true",
        help="also operations for idempotence (with --producer)",
    )
    parser.add_argument("--force", action="store_true", help="do not ask for confirmation")
    add_json(parser)


def _repeated(parser: argparse._ActionsContainer, option: str, metavar: str, text: str) -> None:
    parser.add_argument(option, action="append", default=[], metavar=metavar, help=text)


def run(arguments: argparse.Namespace) -> int:
    _check(arguments)
    with reporting_as("Error while executing ACL command: ", to_stdout=True):
        try:
            _work(arguments)
        except UnsupportedVersionError:
            raise Refused(
                "this broker does not support ACLs. It needs an authorizer "
                "(authorizer.class.name), or a release that has one"
            ) from None
    return 0


def _work(arguments: argparse.Namespace) -> None:
    if arguments.list:
        filters = resources_of(arguments)
        with open_admin(arguments) as admin:
            _list(admin, arguments, filters)
        return
    acls = _acls(arguments)
    with open_admin(arguments) as admin:
        (_add if arguments.add else _remove)(admin, arguments, acls)


def _check(arguments: argparse.Namespace) -> None:
    parser = arguments.parser
    if sum(parser.is_given(arguments, option) for option in _ACTIONS) != 1:
        parser.error("Command must include exactly one action: --list, --add, --remove")
    hosts_and_principals = (
        "--producer", "--consumer", "--allow-host", "--allow-principal", "--deny-host",
        "--deny-principal",
    )  # fmt: skip
    parser.refuse(arguments, "--list", hosts_and_principals)
    for bundle in ("--producer", "--consumer"):
        parser.refuse(arguments, bundle, ("--operation", "--deny-principal", "--deny-host"))
    if arguments.principal and not arguments.list:
        parser.error("The --principal option is only available if --list is set")
    if arguments.producer and not arguments.topic:
        parser.error("With --producer you must specify a --topic")
    if arguments.idempotent and not arguments.producer:
        parser.error("The --idempotent option is only available if --producer is set")
    others = arguments.cluster or arguments.transactional_id
    if arguments.consumer and (
        not arguments.topic or not arguments.group or (not arguments.producer and others)
    ):
        parser.error(
            "With --consumer you must specify a --topic and a --group and no --cluster or "
            "--transactional-id option should be specified"
        )


# From options to entries.


def resources_of(arguments: argparse.Namespace) -> list[ResourcePatternFilter]:
    """The resources that the options name, each once."""
    kind = PatternType[arguments.resource_pattern_type.upper()]
    found = [
        ResourcePatternFilter(resource_type, name.strip(), kind)
        for option, resource_type in _RESOURCES.items()
        for name in getattr(arguments, option)
    ]
    if kind is PatternType.LITERAL and (arguments.cluster or arguments.idempotent):
        found.append(_CLUSTER)
    return list(dict.fromkeys(found))


def entries_of(
    arguments: argparse.Namespace, operations: Collection[AclOperation]
) -> list[AccessControlEntry]:
    """The entries for each principal, operation and host, allowed or denied."""
    found = []
    for permission, principals, hosts in (
        (AclPermissionType.ALLOW, arguments.allow_principal, arguments.allow_host),
        (AclPermissionType.DENY, arguments.deny_principal, arguments.deny_host),
    ):
        found += [
            AccessControlEntry(str(principal), host.strip(), operation, permission)
            for principal in _principals(principals)
            for operation in operations
            for host in hosts or [_ALL_HOSTS]
        ]
    return list(dict.fromkeys(found))


def _principals(texts: Iterable[str]) -> list[KafkaPrincipal]:
    try:
        return list(dict.fromkeys(KafkaPrincipal.parse(text.strip()) for text in texts))
    except ValueError as error:
        raise Refused(str(error)) from None


def _acls(arguments: argparse.Namespace) -> Acls:
    resources = resources_of(arguments)
    parser = arguments.parser
    kind = PatternType[arguments.resource_pattern_type.upper()]
    if arguments.add and kind in (PatternType.ANY, PatternType.MATCH):
        parser.error(
            f"A '--resource-pattern-type' value of '{kind.name}' is not valid when adding acls"
        )
    if not resources:
        parser.error(
            "You must provide at least one resource: --topic <topic> or --cluster or --group "
            "<group> or --delegation-token <Delegation Token ID>"
        )
    acls = _bundles(arguments, resources)
    for resource, entries in acls.items():
        _check_operations(parser, resource.resource_type, entries)
    if arguments.add and not all(acls.values()):
        parser.error(
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs"
        )
    return acls


def _bundles(arguments: argparse.Namespace, resources: list[ResourcePatternFilter]) -> Acls:
    if not arguments.producer and not arguments.consumer:
        operations = [operation_named(name) for name in arguments.operation or ["All"]]
        entries = entries_of(arguments, operations)
        return {resource: list(entries) for resource in resources}
    operation = AclOperation
    wanted: dict[ResourcePatternFilter, list[AclOperation]] = {}
    for resource in resources:
        of_topic = resource.resource_type is ResourceType.TOPIC
        if arguments.producer:
            if of_topic:
                wanted[resource] = [operation.WRITE, operation.DESCRIBE, operation.CREATE]
            elif resource.resource_type is ResourceType.TRANSACTIONAL_ID:
                wanted[resource] = [operation.WRITE, operation.DESCRIBE]
        if arguments.consumer:
            if of_topic:
                wanted.setdefault(resource, []).extend([operation.READ, operation.DESCRIBE])
            elif resource.resource_type is ResourceType.GROUP:
                wanted.setdefault(resource, []).append(operation.READ)
    if arguments.idempotent:
        wanted[_CLUSTER] = [operation.IDEMPOTENT_WRITE]
    return {
        resource: entries_of(arguments, list(dict.fromkeys(operations)))
        for resource, operations in wanted.items()
    }


def _check_operations(
    parser: Parser, resource_type: ResourceType, entries: Iterable[AccessControlEntry]
) -> None:
    valid = (*SUPPORTED[resource_type], AclOperation.ALL)
    if any(entry.operation not in valid for entry in entries):
        shown = ", ".join(each.name for each in valid)
        parser.error(f"ResourceType {resource_type.name} only supports operations [{shown}]")


# Actions.


def _add(admin: Admin, arguments: argparse.Namespace, acls: Acls) -> None:
    added = []
    for resource, entries in acls.items():
        pattern = ResourcePattern(resource.resource_type, resource.name or "", resource[2])
        existing = set(admin.describe_acls(AclBindingFilter(resource)))
        new = []
        for entry in entries:
            binding = AclBinding(pattern, entry)
            if binding not in existing:
                new.append(binding)
            elif not arguments.json:
                print(
                    f"Acl (pattern={_shown(pattern)}, entry={_shown_entry(entry)}) already exists."
                )
        if not new:
            continue
        if not arguments.json:
            print(f"Adding ACLs for resource `{_shown(pattern)}`: ")
            lines = [f"\t{_shown_entry(binding.entry)}" for binding in new]
            print(" " + "\n".join(lines) + "\n")
        admin.create_acls(new)
        added += new
    if arguments.json:
        print_json([_as_json(binding) for binding in added])


def _remove(admin: Admin, arguments: argparse.Namespace, acls: Acls) -> None:
    removed = []
    for resource, entries in acls.items():
        if not _confirmed(arguments, resource, entries):
            continue
        filters = [
            AclBindingFilter(resource, AccessControlEntryFilter(*entry)) for entry in entries
        ] or [AclBindingFilter(resource)]
        for deleted in admin.delete_acls(filters).values():
            for each in deleted:
                if each.error is not None:
                    raise each.error
                removed.append(each.binding)
    if arguments.json:
        print_json([_as_json(binding) for binding in removed])


def _confirmed(
    arguments: argparse.Namespace,
    resource: ResourcePatternFilter,
    entries: list[AccessControlEntry],
) -> bool:
    if arguments.force:
        return True
    if entries:
        lines = "\n".join(f"\t{_shown_entry(entry)}" for entry in entries)
        question = (
            f"Are you sure you want to remove ACLs: \n {lines}\n"
            f" from resource filter `{_shown(resource)}`? (y/n)"
        )
    else:
        question = (
            f"Are you sure you want to delete all ACLs for resource filter "
            f"`{_shown(resource)}`? (y/n)"
        )
    print(question, flush=True)
    return sys.stdin.readline().strip().lower() == "y"


def _list(
    admin: Admin, arguments: argparse.Namespace, resources: list[ResourcePatternFilter]
) -> None:
    filters = [AclBindingFilter(resource) for resource in resources] or [AclBindingFilter.any()]
    bindings = list(
        dict.fromkeys(binding for each in filters for binding in admin.describe_acls(each))
    )
    principals = _principals(arguments.principal)
    if arguments.json:
        names = {str(principal) for principal in principals}
        print_json(
            [
                _as_json(binding)
                for binding in bindings
                if not names or binding.entry.principal in names
            ]
        )
        return
    if not principals:
        _print_acls(bindings)
    for principal in principals:
        print(f"ACLs for principal `{principal}`")
        _print_acls([each for each in bindings if each.entry.principal == str(principal)])


def _print_acls(bindings: list[AclBinding]) -> None:
    by_pattern: dict[ResourcePattern, list[AccessControlEntry]] = {}
    for binding in bindings:
        by_pattern.setdefault(binding.pattern, []).append(binding.entry)
    if on_terminal():
        _show_table(by_pattern)
        return
    for pattern, entries in by_pattern.items():
        lines = "\n".join(f"\t{_shown_entry(entry)}" for entry in entries)
        print(f"Current ACLs for resource `{_shown(pattern)}`:\n{lines}\n")


def _show_table(by_pattern: Mapping[ResourcePattern, Iterable[AccessControlEntry]]) -> None:
    table = Table("RESOURCE", "NAME", "PATTERN", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION")
    for pattern, entries in by_pattern.items():
        for entry in entries:
            denied = entry.permission_type is AclPermissionType.DENY
            table.add(
                pattern.resource_type.name, pattern.name, pattern.pattern_type.name,
                entry.principal, entry.host, entry.operation.name, entry.permission_type.name,
                style="red" if denied else None,
            )  # fmt: skip
    table.show()


def _shown(pattern: ResourcePattern | ResourcePatternFilter) -> str:
    return (
        f"ResourcePattern(resourceType={pattern.resource_type.name}, name={pattern.name}, "
        f"patternType={pattern.pattern_type.name})"
    )


def _shown_entry(entry: AccessControlEntry) -> str:
    return (
        f"(principal={entry.principal}, host={entry.host}, operation={entry.operation.name}, "
        f"permissionType={entry.permission_type.name})"
    )


def _as_json(binding: AclBinding) -> dict[str, object]:
    pattern, entry = binding
    return {
        "resourceType": pattern.resource_type.name,
        "name": pattern.name,
        "patternType": pattern.pattern_type.name,
        "principal": entry.principal,
        "host": entry.host,
        "operation": entry.operation.name,
        "permissionType": entry.permission_type.name,
    }
