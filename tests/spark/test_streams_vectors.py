"""Cases of Kafka Streams 4.3's answers in an application on Spark, with a killed instance."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.streams.test_vectors_embedded import chosen, inputs
from moldau.testing import Broker
from support.streams_embedded import CONFIG, Case, Stage, comparable, expected, renamed
from support.streams_on_spark import SparkApplication, SparkDeployment, spark_deployment
from unit.streams.vectors.program import Program

TESTS = Path(__file__).parents[1]
PROGRAM = """\
import json, sys

sys.path.insert(0, {tests!r})
from unit.streams.vectors.program import Program

with open({cases!r}) as file:
    topology = Program(json.load(file)).topology
"""


def suitable() -> list[Case]:
    """Those that can be put beside others: no settings of their own, no streams by names."""
    found: list[Case] = [each.values[0] for each in chosen(single_input=True)]
    return [
        case
        for case in found
        if not case.get("config") and all(op["op"] != "split" for op in case["topology"])
    ]


def beside_each_other(cases: list[Case]) -> Case:
    """One topology of all, with names of their own."""
    ops: list[dict[str, Any]] = []
    for number, case in enumerate(cases):
        for op in case["topology"]:
            own = {each: op[each] for each in op if each not in OWN}
            ops.append(own | {each: f"c{number}-{op[each]}" for each in OWN if op.get(each)})
    return {"topology": ops}


OWN = ("id", "in", "with", "store", "name", "state")


@pytest.fixture(scope="module")
def deployment(
    tmp_path_factory: pytest.TempPathFactory, small: dict[str, str]
) -> Iterator[SparkDeployment]:
    # The records of the cases are from 1970, so retention would delete inputs and changelogs.
    never = {"log.retention.check.interval.ms": str(24 * 3600 * 1000)}
    with (
        Broker(config=never) as broker,
        spark_deployment(
            tmp_path_factory.mktemp("vectors"), broker.bootstrap_servers, small
        ) as made,
    ):
        yield made


@pytest.mark.long("a Spark server of its own; the test driver and KafkaStreams run the same cases")
def test_cases_have_the_same_results_on_spark(deployment: SparkDeployment, tmp_path: Path) -> None:
    cases = [renamed(case, f"v{number}-") for number, case in enumerate(suitable())]
    assert len(cases) >= 20
    together = beside_each_other(cases)
    file = tmp_path / "cases.json"
    file.write_text(json.dumps(together))
    program = PROGRAM.format(tests=str(TESTS), cases=str(file))
    stage = Stage(deployment.bootstrap, tmp_path)
    sinks = [
        list(dict.fromkeys(op["topic"] for op in case["topology"] if op["op"] == "to"))
        for case in cases
    ]
    stage.create({topic for each in cases for topic in inputs(each)})
    stage.create({topic for each in sinks for topic in each})
    application = SparkApplication(deployment, "vectors", program)
    application.start(**CONFIG)
    try:
        for part in range(2):
            for case in cases:
                steps, half = case["inputs"], len(case["inputs"]) // 2
                for step in steps[half:] if part else steps[:half]:
                    stage.send(step)
            stage.producer.flush()
            if not part:
                application.kill_one(random.Random(1))
        topology = Program(together).topology
        topology.set_default_serdes(key="string", value="string")
        for case, topics in zip(cases, sinks, strict=True):
            wanted = expected(case, topics)
            count = sum(map(len, wanted.values()))
            found = stage.outputs(topology, topics, count)
            assert comparable(found, case) == comparable(wanted, case), case["name"]
    except AssertionError as error:
        raise AssertionError(f"{error}\n{application.report()}") from None
    finally:
        application.stop()
        stage.close()
