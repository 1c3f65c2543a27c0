"""Whatever clients of both protocols do, in whatever order: no partition is read by two."""

from __future__ import annotations

import random
from typing import Any

import pytest


def act(stage: Any, rnd: random.Random, clients: list[Any], names: list[str]) -> None:
    match rnd.choice(["classic", "consumer", "leave", "crash", "reload", "wait"]):
        case "classic" if len(clients) < 6:
            clients.append(stage.classic_client(eager=rnd.random() < 0.5))
        case "consumer" if len(clients) < 6:
            clients.append(stage.consumer_client(names.pop()))
        case "leave" if len(clients) > 1:
            gone = clients.pop(rnd.randrange(len(clients)))
            if hasattr(gone, "leave"):
                if gone.epoch > 0:
                    gone.leave()
            elif gone.member_id:
                stage.leave((gone.member_id, None))
        case "crash" if len(clients) > 1:
            clients.pop(rnd.randrange(len(clients)))
        case "reload":
            stage.reload()
        case _:
            stage.advance(rnd.randrange(5_000))


@pytest.mark.parametrize("seed", range(25))
def test_partitions_have_one_reader_and_find_one_in_the_end(Stage: Any, seed: int) -> None:
    rnd = random.Random(seed)
    stage = Stage()
    names = [f"consumer-{number}" for number in range(100)]
    clients: list[Any] = [stage.classic_client()]
    for _ in range(40):
        act(stage, rnd, clients, names)
        for _ in range(rnd.randrange(6)):
            rnd.choice(clients).step()
        owned = [each for client in clients for each in client.owned]
        assert len(owned) == len(set(owned))
    stage.settle(*clients, rounds=150)
    kinds = {hasattr(client, "epoch") for client in clients}
    assert stage.kind == ("consumer" if True in kinds else "classic")
