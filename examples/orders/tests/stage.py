"""Rules on a stage: what a processor does with them, without a broker."""

from typing import Any

from orders import topics
from orders.logic import Incoming, Logic, Outgoing
from orders.model import CREATED, Order, iso

NOON = 1_800_000_000_000


def order(order_id: str = "o-1", *, at_s: float = 0, state: str = CREATED, **fields: Any) -> Order:
    values: dict[str, Any] = {
        "customer_id": "ada", "product": "hats", "quantity": 1, "price_cents": 1000
    }  # fmt: skip
    created_at = iso(NOON + round(at_s * 1000))
    return Order(id=order_id, created_at=created_at, state=state, **(values | fields))


class Stage:
    """A logic and its changelog."""

    def __init__(self, logic: Logic, changelog: str | None = None) -> None:
        self.logic = logic
        self._changelog = changelog
        self.kept: dict[str, dict[str, Any] | None] = {}

    def sees(self, each: Order, topic: str = topics.ORDERS) -> list[Outgoing]:
        return self.takes(topic, each.id, each.as_json(), each.created_ms)

    def takes(
        self, topic: str, key: str, value: dict[str, Any] | None, at: int = NOON
    ) -> list[Outgoing]:
        """What leaves the service."""
        written = self.logic.process(Incoming(topic, key, value, at))
        for each in written:
            if each.topic == self._changelog:
                self.logic.replay(each.topic, each.key, each.value)
                self.kept[each.key] = each.value
        return [each for each in written if each.topic != self._changelog]

    def restarted(self, logic: Logic) -> "Stage":
        """With a new logic, as rebuilt from the compacted changelog."""
        stage = Stage(logic, self._changelog)
        for key, value in self.kept.items():
            logic.replay(self._changelog or "", key, value)
        stage.kept = dict(self.kept)
        return stage
