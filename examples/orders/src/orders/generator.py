"""Makes orders: a plan from a seed, as many per second and as much in disorder as is asked for.

The plan is pure: the same settings give the same requests. In it are good orders, and
    bad      ones that make no sense (quantity of zero, price below zero, no customer)
    fraud    few customers who order for far too much
    scarce   a product of which there is little
and with `disorder` between 0 and 1
    late     orders made some time before they arrive: that share of all
    repeats  the same order posted again, as by a client that got no answer: half that share
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from orders.model import iso

__all__ = ["CUSTOMERS_MIN", "PRODUCTS", "STOCK", "Planned", "Settings", "customers", "plan"]

#: Product, price in cents, how much there is.
_CATALOGUE: Final = (
    ("jumpers", 4_990, 10_000_000),
    ("underpants", 1_290, 10_000_000),
    ("stockings", 890, 10_000_000),
    ("hats", 2_450, 10_000_000),
    ("raincoats", 7_900, 10_000_000),
    ("umbrellas", 1_900, 10_000_000),
    ("boots", 8_900, 10_000_000),
    ("scarves", 1_590, 10_000_000),
)
SCARCE: Final = ("first-editions", 3_900, 25)
STOCK: Final = {name: stock for name, _, stock in (*_CATALOGUE, SCARCE)}
PRODUCTS: Final = tuple(STOCK)

BAD: Final = 0.03
FRAUD: Final = 0.04
WANTED_SCARCE: Final = 0.04
LATENESS_MS_MAX: Final = 90_000
CUSTOMERS_MIN: Final = 20
_FRAUDSTERS: Final = 3
_REPEATED_FROM: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    rate: float = 50.0
    disorder: float = 0.1
    seed: int = 1
    #: What order ids begin with; another one makes other orders.
    run: str = "o"

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 10_000:
            raise ValueError(f"rate: {self.rate} is not above 0 and at most 10000 per second")
        if not 0 <= self.disorder <= 1:
            raise ValueError(f"disorder: {self.disorder} is not 0 to 1")

    @property
    def customer_count(self) -> int:
        """So many that none of the honest ones orders for too much."""
        return max(CUSTOMERS_MIN, round(self.rate * 20))


@dataclass(frozen=True, slots=True)
class Planned:
    due_ms: int
    kind: str
    request: dict[str, Any]


def customers(settings: Settings) -> dict[str, dict[str, Any]]:
    honest = [f"customer-{number:04d}" for number in range(settings.customer_count)]
    fraudsters = [f"mallory-{number}" for number in range(_FRAUDSTERS)]
    return {
        each: {
            "id": each,
            "name": each.replace("-", " ").title(),
            "email": f"{each}@mail.example",
        }
        for each in (*honest, *fraudsters)
    }


def plan(settings: Settings, start_ms: int) -> Iterator[Planned]:
    """Without end, in the order in which they are due; `due_ms` counts from `start_ms`."""
    dice = random.Random(settings.seed)
    due_ms = 0.0
    recent: list[Planned] = []
    number = 0
    while True:
        due_ms += dice.expovariate(settings.rate) * 1000
        if recent and dice.random() < settings.disorder / 2:
            again = dice.choice(recent)
            yield Planned(round(due_ms), "repeat", again.request)
            continue
        created_ms = start_ms + round(due_ms)
        kind, request = _order(dice, settings)
        if dice.random() < settings.disorder:
            created_ms -= dice.randint(1_000, LATENESS_MS_MAX)
            kind = "late" if kind == "good" else kind
        identity = {"id": f"{settings.run}-{number:06d}"}
        planned = Planned(
            round(due_ms), kind, {**identity, **request, "created_at": iso(created_ms)}
        )
        number += 1
        recent = [*recent[1 - _REPEATED_FROM :], planned]
        yield planned


def _order(dice: random.Random, settings: Settings) -> tuple[str, dict[str, Any]]:
    product, price, _ = dice.choice(_CATALOGUE)
    request: dict[str, Any] = {
        "customer_id": f"customer-{dice.randrange(settings.customer_count):04d}",
        "product": product,
        "quantity": dice.randint(1, 5),
        "price_cents": price,
    }
    fate = dice.random()
    if fate < BAD:
        wrong: dict[str, Any] = dice.choice(
            [{"quantity": 0}, {"price_cents": -100}, {"customer_id": ""}]
        )
        return "bad", {**request, **wrong}
    if fate < BAD + FRAUD:
        customer = f"mallory-{dice.randrange(_FRAUDSTERS)}"
        return "fraud", {**request, "customer_id": customer, "quantity": 20, "price_cents": 89_900}
    if fate < BAD + FRAUD + WANTED_SCARCE:
        product, price, _ = SCARCE
        wanted = dice.randint(1, 5)
        return "scarce", {
            **request, "product": product, "price_cents": price, "quantity": wanted
        }  # fmt: skip
    return "good", request
