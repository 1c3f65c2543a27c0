"""What `moldau security init` makes: settings of nodes and clients, users and their ACLs.

Clients and brokers connect by SASL_SSL and log in with SCRAM-SHA-512. Controllers know one another
by certificates: users are in the metadata log, which a controller can read only once it has
connected. A user may do everything with topics, groups and transactional ids whose names begin with
the user's name and a hyphen, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moldau.broker.metadata.machine.acl_model import Acl
from moldau.cli.nodes.machine.cluster_plan import (
    CONTROLLERS_MAX,
    NodePlan,
    plan_nodes,
    ports_of,
)
from moldau.wire.acls import WILDCARD, AclOperation, AclPermissionType, PatternType, ResourceType

__all__ = [
    "ADMIN",
    "BROKER",
    "MECHANISM",
    "Plan",
    "acls_of",
    "client_properties",
    "is_loopback",
    "node_properties",
    "node_subject",
    "plan_of",
    "prefix_of",
    "problem_of_user",
    "scram_argument",
]

ADMIN = "admin"
BROKER = "broker"
MECHANISM = "SCRAM-SHA-512"
_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_OWN = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
# Without a hyphen no user's prefix is the beginning of another's.
_USER = re.compile(r"[A-Za-z0-9_]{1,64}")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    nodes: tuple[NodePlan, ...]
    host: str
    """By which clients reach the nodes."""

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(address_text(self.host, node.port) for node in self.nodes)

    @property
    def port_last(self) -> int:
        return max(node.controller_port or node.port for node in self.nodes)


def plan_of(*, count: int, port: int, host: str, directory: str) -> Plan:
    """Nodes 1 to 3 are brokers and controllers, all others are brokers."""
    ports, controller_ports = ports_of(port, brokers=count, controllers=min(count, CONTROLLERS_MAX))
    nodes = plan_nodes(
        ports,
        controller_ports,
        replication=min(count, 3),
        data=f"{directory}/data",
        overrides={},
    )
    return Plan(nodes=tuple(nodes), host=host)


def problem_of_user(name: str) -> str | None:
    if _USER.fullmatch(name) is None:
        return "use up to 64 letters, digits and '_'"
    if name in (ADMIN, BROKER):
        return "this user is made anyway"
    return None


def is_loopback(host: str) -> bool:
    return host in _LOOPBACK


def address_text(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def prefix_of(user: str) -> str:
    """What names of the user's topics and groups begin with."""
    return f"{user}-"


def node_subject(node: NodePlan) -> dict[str, str]:
    """The distinguished name in the node's certificate."""
    return {"CN": node.name, "OU": "brokers"}


def node_properties(plan: Plan, node: NodePlan, directory: str, password: str) -> dict[str, str]:
    own = {
        "listeners": _listeners(plan, node),
        "advertised.listeners": f"CLIENTS://{address_text(plan.host, node.port)}",
        "listener.security.protocol.map": "CLIENTS:SASL_SSL,CONTROLLER:SSL",
        "inter.broker.listener.name": "CLIENTS",
        "sasl.enabled.mechanisms": MECHANISM,
        "sasl.mechanism.inter.broker.protocol": MECHANISM,
        f"listener.name.clients.{MECHANISM.lower()}.sasl.jaas.config": _jaas(BROKER, password),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": f"{directory}/{node.name}.pem",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": f"{directory}/ca.pem",
        "listener.name.controller.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": f"RULE:^CN=node-[0-9]+,OU=brokers$/{BROKER}/,DEFAULT",
        "authorizer.class.name": _AUTHORIZER,
        "super.users": f"User:{ADMIN};User:{BROKER}",
    }
    return {**node.properties, **own}


def _listeners(plan: Plan, node: NodePlan) -> str:
    bound = plan.host if is_loopback(plan.host) else "0.0.0.0"
    listeners = f"CLIENTS://{address_text(bound, node.port)}"
    if node.controller_port is not None:
        listeners += f",CONTROLLER://127.0.0.1:{node.controller_port}"
    return listeners


def client_properties(plan: Plan, user: str, password: str, ca: str) -> dict[str, str]:
    """All that a client needs: the file can be copied to other machines."""
    return {
        "bootstrap.servers": plan.bootstrap_servers,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": MECHANISM,
        "sasl.jaas.config": _jaas(user, password),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": ca,
    }


def scram_argument(user: str, password: str) -> str:
    return f"{MECHANISM}=[name={user},password={password}]"


def acls_of(users: Sequence[str]) -> list[Acl]:
    return [
        Acl(
            resource_type,
            prefix_of(user),
            PatternType.PREFIXED,
            f"User:{user}",
            WILDCARD,
            AclOperation.ALL,
            AclPermissionType.ALLOW,
        )
        for user in users
        for resource_type in _OWN
    ]


def _jaas(user: str, password: str) -> str:
    options: Mapping[str, str] = {"username": user, "password": password}
    shown = " ".join(f'{name}="{value}"' for name, value in options.items())
    return f"{_MODULE} required {shown};"
