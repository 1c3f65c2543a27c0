"""A mirror and its clusters are killed while groups move over and back; see support.mirror_kills,
which `make mirror-kills` runs at length."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.mirror_kills import ONE_NODE, THREE_NODES, run


@pytest.mark.long("two clusters under load, four kills and two moves")
def test_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    run(tmp_path, count=4, seed=5, shape=ONE_NODE, moves_every=2)


@pytest.mark.long("the drill between two clusters of three nodes")
def test_groups_move_between_clusters_of_three_nodes_under_load(tmp_path: Path) -> None:
    run(tmp_path, count=6, seed=7, shape=THREE_NODES, moves_every=3)
