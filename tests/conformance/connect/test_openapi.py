"""The OpenAPI document: it has all of Connect's paths, and no request ends in a 500."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from support.connect_workers import WorkerUnderTest, standalone_worker
from support.processes import BrokerProcess

VECTORS = Path(__file__).parents[3].parent / "shared" / "vectors" / "openapi"
METHODS = ("get", "post", "put", "patch", "delete")


def operations(document: Any) -> set[str]:
    return {
        f"{method.upper()} {re.sub(r'{[^}]*}', '{}', path)}"
        for path, found in document["paths"].items()
        for method in found
        if method in METHODS
    }


@pytest.fixture(scope="module")
def worker(
    broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WorkerUnderTest]:
    with standalone_worker(broker.bootstrap, tmp_path_factory.mktemp("connect")) as found:
        yield found


@pytest.fixture(scope="module")
def document(worker: WorkerUnderTest) -> Any:
    return worker.call("GET", "/openapi.json").body


def test_every_path_of_connects_document_is_there(document: Any) -> None:
    path = VECTORS / "connect-rest-4.3.yaml"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    theirs = operations(yaml.safe_load(path.read_text()))
    assert len(theirs) > 25
    assert theirs - operations(document) == set()


@pytest.mark.long("hundreds of generated requests; test_rest has the errors")
@pytest.mark.slow("asks some hundred generated requests")
def test_no_generated_request_ends_in_a_500(
    worker: WorkerUnderTest, document: Any, tmp_path: Path
) -> None:
    """Each operation of the document, with valid and invalid values that schemathesis makes up."""
    file = tmp_path / "in.txt"
    file.write_text("line\n")
    config = {"connector.class": "FileStreamSource", "file": str(file), "topic": "generated"}
    assert worker.call("PUT", "/connectors/known/config", config).status == 201
    names = st.sampled_from(["known", "known", "none", "a/b"])
    plugins = st.sampled_from(["FileStreamSource", "FileStreamSink", "Cast$Value", "none"])
    for result in schemathesis.openapi.from_dict(document).get_all_operations():
        operation = result.ok()

        @settings(
            max_examples=6,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(), data=st.data())
        def ask(case: Any, data: Any) -> None:
            for parameter, values in (("connector", names), ("plugin", plugins)):
                if parameter in (case.path_parameters or {}):
                    case.path_parameters[parameter] = data.draw(values)
            response = case.call(base_url=worker.url)
            assert response.status_code < 500, (case.method, case.path, case.body, response.text)

        ask()
