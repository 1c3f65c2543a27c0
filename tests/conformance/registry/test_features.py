"""The registry against scenarios that were run against Confluent's server (see the vectors' README).

One broker and one registry serve all of them; everything is removed before each scenario.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.testing import Broker
from support.registry.gherkin import Scenario, read_feature
from support.registry.stage import RegistryStage, registry_on
from support.registry.steps import run_scenario

VECTORS = Path(__file__).parents[3].parent / "shared" / "vectors" / "schema-registry"

#: Features that are not there yet, by file.
NOT_YET = {
    "dek_registry.feature": "the registry of data encryption keys",
    "metrics_confluent_compat.feature": "metrics with the names of Confluent's JMX exporter",
}
#: Scenarios that hold for AxonOps' server and not for Confluent's.
OTHERS_ONLY = "@axonops-only"


def _scenarios() -> list[Scenario]:
    files = sorted(VECTORS.glob("features*/*.feature"))
    return [each for path in files for each in read_feature(path)]


SCENARIOS = _scenarios()


@pytest.fixture(scope="module")
def stage() -> Iterator[RegistryStage]:
    with Broker() as broker, registry_on(broker.bootstrap_servers) as found:
        yield found


@pytest.mark.skipif(not SCENARIOS, reason=f"no feature files in {VECTORS}")
def test_there_are_scenarios() -> None:
    assert len(SCENARIOS) > 1_000


@pytest.mark.parametrize(
    "scenario", SCENARIOS, ids=[f"{each.file}:{each.line}" for each in SCENARIOS]
)
def test_scenario(scenario: Scenario, stage: RegistryStage) -> None:
    if OTHERS_ONLY in scenario.tags:
        pytest.skip("holds for another server than Confluent's")
    if scenario.file in NOT_YET:
        pytest.skip(f"not there yet: {NOT_YET[scenario.file]}")
    stage.reset()
    run_scenario(scenario, stage.client)
