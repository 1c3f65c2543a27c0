"""The quotas of IP addresses and host names, as the network gets them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from moldau.broker.security.quotas.address_rates import AddressRates


def quotas(**rates: float) -> dict[Any, dict[str, float]]:
    return {
        frozenset({("ip", None if name == "default" else name)}): {"connection_creation_rate": rate}
        for name, rate in rates.items()
    }


def updates_of(given: Mapping[Any, Mapping[str, float]]) -> list[Any]:
    updates: list[Any] = []

    async def main() -> None:
        rates = AddressRates(lambda default, limits: updates.append((default, dict(limits))))
        rates.update(given)
        if rates._resolving is not None:
            await rates._resolving

    asyncio.run(main())
    return updates


def test_addresses_are_spelled_as_sockets_spell_them() -> None:
    given = quotas(default=7.0, **{"10.0.0.1": 1.0, "0:0:0:0:0:0:0:1": 2.0})
    assert updates_of(given) == [(7.0, {"10.0.0.1": 1.0, "::1": 2.0})]


def test_host_names_are_resolved() -> None:
    first, second = updates_of(quotas(localhost=3.0))
    assert first == (None, {})
    assert second[1]["127.0.0.1"] == 3.0


def test_a_host_without_an_address_has_no_quota() -> None:
    assert updates_of(quotas(**{"no.such.host.invalid": 3.0})) == [(None, {}), (None, {})]


def test_other_quotas_are_of_no_concern() -> None:
    entity = frozenset({("user", "u")})
    assert updates_of({entity: {"producer_byte_rate": 1.0}}) == [(None, {})]
