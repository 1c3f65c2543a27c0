"""`moldau security init`: writes what `machine/security_plan.py` decides, and formats the nodes.

Invariants: nothing that exists is overwritten, and what fails leaves no directory behind. Keys and
passwords are in files that only their owner can read; no command line and no output has them.
"""

from __future__ import annotations

import argparse
import datetime
import os
import secrets
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from moldau.cli.nodes.configuration import load_config
from moldau.cli.nodes.storage import format_folders, new_uuid_text
from moldau.cli.security.machine.security_plan import (
    ADMIN,
    BROKER,
    MECHANISM,
    Plan,
    acls_of,
    client_properties,
    is_loopback,
    node_properties,
    node_subject,
    plan_of,
    prefix_of,
    problem_of_user,
    scram_argument,
)
from moldau.cli.support.failures import Failure
from moldau.config.properties import dump_properties
from moldau.installation import command, pip_install, python
from moldau.security.certificates import Authority, write_secret

__all__ = ["run_init"]

_NODES_MAX = 20
_DAYS_MAX = 3650
_PASSWORD_BYTES = 24
_LOCAL_HOSTS = ("localhost", "127.0.0.1")

_PROGRAM = '''\
"""Sends a record as the user {user}, and prints what the topic has."""

from pathlib import Path

from moldau.client import Consumer, Producer
from moldau.config.properties import load_properties

config = load_properties(Path(__file__).with_name("{user}.properties").read_text())

with Producer(config) as producer:
    producer.send("{topic}", "hello from Python").result(30)

with Consumer(config, group_id="{group}-python", auto_offset_reset="earliest") as consumer:
    consumer.subscribe(["{topic}"])
    for record in consumer.poll(30):
        print(record.value.decode())
'''


def run_init(arguments: argparse.Namespace) -> int:
    users = list(dict.fromkeys(arguments.user or ["client"]))
    hosts = list(dict.fromkeys(arguments.host or ["127.0.0.1"]))
    directory = Path(os.path.abspath(arguments.directory))
    _check(arguments, users, hosts, directory)
    plan = plan_of(
        count=arguments.nodes, port=arguments.port, host=hosts[0], directory=str(directory)
    )
    if not 1 <= arguments.port <= plan.port_last <= 65535:
        raise Failure(
            f"--port {arguments.port}: the nodes take the ports up to {plan.port_last}; ports are "
            "between 1 and 65535"
        )
    try:
        authority = Authority("Moldau CA", life=datetime.timedelta(days=arguments.days))
    except ImportError:
        raise Failure(
            "to make certificates, the package cryptography is needed: " + pip_install("security")
        ) from None
    try:
        _make(directory, plan, authority, users, hosts)
    except BaseException as error:
        shutil.rmtree(directory, ignore_errors=True)
        if isinstance(error, OSError):
            where = error.filename or directory
            raise Failure(f"cannot write {where}: {error.strerror or error}") from None
        raise
    print(_report(directory, plan, users, arguments.days))
    return 0


def _check(
    arguments: argparse.Namespace, users: Sequence[str], hosts: Sequence[str], directory: Path
) -> None:
    if not 1 <= arguments.nodes <= _NODES_MAX:
        raise Failure(f"--nodes {arguments.nodes}: choose 1 to {_NODES_MAX}")
    if not 1 <= arguments.days <= _DAYS_MAX:
        raise Failure(f"--days {arguments.days}: choose 1 to {_DAYS_MAX}")
    for user in users:
        if (problem := problem_of_user(user)) is not None:
            raise Failure(f"--user {user}: {problem}")
    for host in hosts:
        if not host or not host.isascii() or set(host) & set(" ,/@*"):
            raise Failure(f"--host {host!r} is not the name or the address of a host")
    if "," in str(directory):
        raise Failure(f"--directory {directory}: its name must not contain a comma")
    try:
        is_taken = os.path.lexists(directory) and any(directory.iterdir())
    except OSError as error:
        raise Failure(f"--directory {directory}: {error.strerror}") from None
    if is_taken:
        raise Failure(
            f"{directory} is not empty, and nothing is overwritten. Choose another --directory, or "
            "delete it"
        )


def _make(
    directory: Path, plan: Plan, authority: Authority, users: Sequence[str], hosts: Sequence[str]
) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)
    passwords = {user: secrets.token_urlsafe(_PASSWORD_BYTES) for user in (ADMIN, BROKER, *users)}
    (directory / "ca.pem").write_bytes(authority.certificate)
    write_secret(directory / "ca.key", authority.key)
    names = dict.fromkeys((*hosts, *_LOCAL_HOSTS))
    cluster_id = new_uuid_text()
    scram = [scram_argument(user, password) for user, password in passwords.items()]
    for node in plan.nodes:
        write_secret(directory / f"{node.name}.pem", authority.issue(node_subject(node), names))
        properties = node_properties(plan, node, str(directory), passwords[BROKER])
        _write(directory / f"{node.name}.properties", properties)
        format_folders(load_config(properties), cluster_id, scram=scram, acls=acls_of(users))
    ca = authority.certificate.decode()
    for user in (ADMIN, *users):
        properties = client_properties(plan, user, passwords[user], ca)
        _write(directory / f"{user}.properties", properties)
    user = users[0]
    program = _PROGRAM.format(user=user, topic=_topic(user), group=_group(user))
    (directory / "example.py").write_text(program)


def _write(path: Path, properties: Mapping[str, str]) -> None:
    text = "# Written by `moldau security init`.\n" + dump_properties(properties)
    write_secret(path, text.encode())


def _topic(user: str) -> str:
    return f"{prefix_of(user)}greetings"


def _group(user: str) -> str:
    return f"{prefix_of(user)}readers"


def _report(directory: Path, plan: Plan, users: Sequence[str], days: int) -> str:
    shown = _shown(directory)
    nodes = [node.name for node in plan.nodes]
    each = nodes[0] if len(nodes) == 1 else "node-N"
    kind = "a node" if len(nodes) == 1 else f"{len(nodes)} nodes"
    bound = "this machine only" if is_loopback(plan.host) else "every network of this machine"
    tool, user = command(), users[0]
    of = f"--command-config {shown}/{user}.properties"
    topic = f"--topic {_topic(user)}"
    return "\n".join(
        [
            f"{shown} has {kind} with TLS, logins and ACLs:",
            f"  listening  SASL_SSL://{plan.bootstrap_servers}, for {bound}",
            f"  CA         ca.pem and ca.key; certificates are valid for {days} days",
            f"  nodes      {each}.properties, {each}.pem, data/{each}",
            f"  users      {', '.join((ADMIN, *users))} ({MECHANISM}), each with USER.properties",
            f"  ACLs       {ADMIN}: everything; "
            + ", ".join(f"{name}: {prefix_of(name)}*" for name in users),
            "  Keys and passwords are readable for the owner only.",
            "",
            "Start it:" if len(nodes) == 1 else "Start it, each node in a terminal of its own:",
            *(f"  {tool} server-start {shown}/{name}.properties" for name in nodes),
            "",
            "Try it in another terminal:",
            f"  echo hello | {tool} console-producer {of} {topic}",
            f"  {tool} console-consumer {of} {topic} \\\n"
            f"    --group {_group(user)} --from-beginning --max-messages 1",
            f"  {python()} {shown}/example.py",
            f"  {tool} acls --list --command-config {shown}/{ADMIN}.properties",
            "",
            "Use it without --command-config:",
            f"  {tool} profile create secured {of}",
        ]
    )


def _shown(directory: Path) -> str:
    """The directory as one would type it here."""
    here = Path.cwd()
    below = directory.is_relative_to(here) and directory != here
    return shlex.quote(str(directory.relative_to(here) if below else directory))
