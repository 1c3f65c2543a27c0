"""How a node logs in to other nodes: by its own listener's mechanism and JAAS line.

Brokers use sasl.mechanism.inter.broker.protocol, calls to controllers
sasl.mechanism.controller.protocol. The line is that of the listener of the same name, which also
names the users that may log in: `username` and `password` in it are the node's own.
"""

from __future__ import annotations

from typing import Final

from moldau.broker.config import BrokerConfig
from moldau.broker.config.listener_settings import listener_prefix, listener_settings
from moldau.security.logins import login_of
from moldau.security.sasl_client import Login

__all__ = ["peer_login"]

_JAAS: Final = "sasl.jaas.config"


def peer_login(config: BrokerConfig, listener_name: str) -> Login:
    """Raises ConfigError."""
    settings = dict(listener_settings(config, listener_name))
    is_controller = listener_name in config.controller_listener_names
    mechanism = str(
        settings["sasl.mechanism.controller.protocol"]
        if is_controller
        else settings["sasl.mechanism.inter.broker.protocol"]
    )
    own = f"{mechanism.lower()}.{_JAAS}"
    key = f"{listener_prefix(listener_name)}{own}"
    settings[key] = settings[_JAAS] if settings.get(own) is None else settings[own]
    return login_of(settings, mechanism=mechanism, jaas_key=key)
