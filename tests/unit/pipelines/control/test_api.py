"""What the API writes down and refuses; nothing is started behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.pipelines import Pipeline, PipelineError, Pipelines, Sql, Topic, daemon
from moldau.pipelines.machine.records import ErrorRecord, ProgressRecord, State, StatusRecord
from moldau.pipelines.registry import Registry
from moldau.testing import Broker


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with Broker() as broker:
        yield str(broker.bootstrap_servers)


@pytest.fixture
def pipelines(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Pipelines]:
    monkeypatch.setattr(daemon, "ensure_running", lambda *_, **__: 1)
    with Pipelines(bootstrap, folder=tmp_path / "spark", timeout=0.2) as made:
        yield made


def orders(name: str, query: str = "SELECT * FROM input", **more: str) -> Pipeline:
    return Pipeline(
        name,
        source=Topic("orders", schema="id INT"),
        steps=[Sql(query)],
        sink=Topic("out"),
        **more,  # type: ignore[arg-type]
    )


def report(bootstrap: str, status: StatusRecord) -> None:
    """As the loop would."""
    with Registry(bootstrap) as registry:
        registry.write_status(status)


def test_only_another_definition_is_another_revision(pipelines: Pipelines) -> None:
    first = orders("revised")
    info = pipelines.start(first, wait=False)
    assert (info.desired, info.state) == ("running", "starting")
    assert (info.generation, info.revision) == (1, 1)
    info = pipelines.start(first, wait=False)
    assert (info.generation, info.revision) == (2, 1)
    info = pipelines.start(orders("revised", "SELECT id FROM input"), wait=False)
    assert (info.generation, info.revision) == (3, 2)
    assert pipelines.stop("revised", wait=False).revision == 2
    assert pipelines.start("revised", wait=False).revision == 2
    assert pipelines.restart("revised", wait=False).revision == 3


def test_what_failed_or_finished_is_tried_once_more(pipelines: Pipelines, bootstrap: str) -> None:
    pipelines.start(orders("over"), wait=False)
    report(bootstrap, StatusRecord(name="over", state=State.FAILED, revision=1))
    assert pipelines.show("over").state == "failed"
    info = pipelines.start("over", wait=False)
    assert (info.revision, info.state) == (2, "starting")


def test_a_start_that_fails_raises_what_went_wrong(pipelines: Pipelines, bootstrap: str) -> None:
    pipelines.start(orders("wrong"), wait=False)
    error = ErrorRecord(message="no such column", where="steps.py:3", hint="mend it", detail="all")
    status = StatusRecord(name="wrong", state=State.FAILED, revision=2, last_error=error)
    report(bootstrap, status)
    with pytest.raises(PipelineError) as caught:
        pipelines.restart("wrong")
    assert str(caught.value) == "steps.py:3: no such column (mend it)"
    assert caught.value.detail == "all"


def test_a_start_that_is_tried_again_raises_unless_only_the_machine_was_busy(
    pipelines: Pipelines, bootstrap: str
) -> None:
    def restarting(revision: int, message: str) -> None:
        error = ErrorRecord(message=message)
        status = StatusRecord(
            name="again", state=State.RESTARTING, revision=revision, last_error=error
        )
        report(bootstrap, status)

    pipelines.start(orders("again"), wait=False)
    restarting(2, "no broker")
    with pytest.raises(PipelineError, match="again failed: no broker"):
        pipelines.restart("again")
    restarting(3, "Python worker failed to connect back.")
    with pytest.raises(PipelineError, match=r"not running after .* but restarting"):
        pipelines.restart("again")


def test_a_wait_has_an_end_and_says_what_is(pipelines: Pipelines, bootstrap: str) -> None:
    pipelines.start(orders("late"), wait=False)
    with pytest.raises(PipelineError, match=r"late is not running after 0\.2 s but starting"):
        pipelines.wait("late", "running")
    status = StatusRecord(
        name="late", state=State.STOPPED, revision=1, progress=ProgressRecord(batch_id=4)
    )
    report(bootstrap, status)
    info = pipelines.stop("late")
    assert info.state == "stopped"
    assert info.progress == ProgressRecord(batch_id=4)
    with pytest.raises(PipelineError, match="late is not deleted"):
        pipelines.delete("late")


def test_an_unknown_name_gets_a_guess(pipelines: Pipelines) -> None:
    pipelines.start(orders("guessed"), wait=False)
    for refused in (pipelines.start, pipelines.stop, pipelines.restart, pipelines.show):
        with pytest.raises(PipelineError, match=r"there is no pipeline gussed .*guessed"):
            refused("gussed")
    with pytest.raises(PipelineError, match="there is no pipeline gussed"):
        pipelines.logs("gussed")


def test_a_pipeline_of_another_deployment_is_seen_and_left_alone(
    pipelines: Pipelines, bootstrap: str, tmp_path: Path
) -> None:
    pipelines.start(orders("elsewhere"), wait=False)
    with Pipelines(bootstrap, folder=tmp_path / "other") as others:
        assert "elsewhere" in [info.name for info in others.list()]
        for refused in (others.start, others.stop, others.restart, others.delete):
            with pytest.raises(PipelineError, match="belongs to another deployment"):
                refused("elsewhere")
        with pytest.raises(PipelineError, match="belongs to another deployment"):
            others.start(orders("elsewhere"))


def test_two_pipelines_do_not_share_a_checkpoint(pipelines: Pipelines, tmp_path: Path) -> None:
    shared = str(tmp_path / "shared")
    pipelines.start(orders("one", checkpoint=shared), wait=False)
    pipelines.start(orders("one", checkpoint=shared), wait=False)
    with pytest.raises(PipelineError, match="is that of the pipeline one"):
        pipelines.start(orders("two", checkpoint=shared), wait=False)


def test_a_file_that_is_wrong_is_not_written_down(pipelines: Pipelines, tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text("name: unwritten\nsource: {tpoic: a}\nsink: {topic: b}\n")
    with pytest.raises(PipelineError, match="did you mean 'topic'"):
        pipelines.start(file)
    assert "unwritten" not in [info.name for info in pipelines.list()]


def test_a_folder_without_a_cluster_says_so(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="has no cluster yet"):
        Pipelines(folder=tmp_path)
