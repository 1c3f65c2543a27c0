"""Who can reach a node that nothing secures: one line for its log."""

from __future__ import annotations

from collections.abc import Sequence

from moldau.broker.config import Listener

__all__ = ["exposure_of"]


def exposure_of(listeners: Sequence[Listener]) -> str | None:
    """None if every listener is secured."""
    plain = [listener for listener in listeners if listener.security_protocol == "PLAINTEXT"]
    if not plain:
        return None
    exposed = [listener for listener in plain if not listener.is_loopback]
    if exposed:
        return (
            f"not secured and open to the network: {', '.join(map(str, exposed))}. Anybody who "
            "reaches it can read and write everything: use SSL or SASL_SSL, or a loopback address"
        )
    if len(plain) < len(listeners):
        return None
    return (
        f"nothing is secured, so only this machine can connect: {', '.join(map(str, plain))}. "
        "To open it to a network, set up SSL or SASL_SSL in listeners"
    )
