"""The registry against scenarios of another registry (see the vectors' README).

Most were run against Confluent's server as well. Where one contradicts it, Confluent's decides.
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

#: Scenarios that hold for AxonOps' server and not for Confluent's.
OTHERS_ONLY = "@axonops-only"
_ALL_LISTED = "Confluent lists the subjects of all contexts, with their contexts"
_QUALIFIED = "Confluent answers with the context in front of a subject"
_NO_FILTER = "Confluent uses the parameter subject to find the id, not to filter"
_INVALID = "Confluent answers 422 with 42208"
_CONTENT = "in Confluent's server metadata and rules are a part of what an id stands for"
_KEYS = "codes, versions and messages of keys differ from Confluent's DEK registry"
_KEYS_LINES = (
    *(138, 636, 710, 859, 1030, 1122, 1134, 1194, 1209, 1224, 1231, 1300, 1427, 1475, 1481),
    *(1491, 1500, 1513, 1526, 1628, 1672, 1748, 1862),
)
_IDENTITY_LINES = (77, 215, 366, 494, 581, 796, 861, 1023)
#: Scenarios that contradict Confluent's server (8.1 and its source), by file and line.
CONTRADICTING = {
    ("advanced_features.feature", 588): _NO_FILTER,
    ("advanced_features.feature", 603): _NO_FILTER,
    ("contexts_advanced_api.feature", 57): _QUALIFIED,
    ("contexts_advanced_api.feature", 447): _ALL_LISTED,
    ("contexts_global_config.feature", 737): "Confluent's modes of one context stay in it",
    ("contexts_global_config.feature", 801): _INVALID,
    ("contexts_global_config.feature", 808): _INVALID,
    ("contexts_global_config.feature", 815): "Confluent lists no subjects there, and answers 200",
    ("contexts_isolation.feature", 170): _ALL_LISTED,
    ("contexts_operations.feature", 418): _QUALIFIED,
    ("contexts_real_world.feature", 14): _ALL_LISTED,
    ("contexts_url_routing.feature", 136): _QUALIFIED,
    ("metadata_rulesets.feature", 191): _CONTENT,
    ("metadata_rulesets.feature", 786): "Confluent answers 404 if no version has metadata",
    ("modeling_protobuf_compatibility.feature", 525): (
        "Confluent's source allows a field to move out of a oneof since 8.2"
    ),
    **{("dek_registry.feature", line): _KEYS for line in _KEYS_LINES},
    **{("schema_identity.feature", line): _CONTENT for line in _IDENTITY_LINES},
}


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
    if (scenario.file, scenario.line) in CONTRADICTING:
        pytest.skip(CONTRADICTING[scenario.file, scenario.line])
    stage.reset()
    run_scenario(scenario, stage.client)
