"""The step that scores rows with a model, without Spark."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier

from moldau.pipelines import DefinitionError, Pipeline, PipelineError, Score, Topic, build
from moldau.pipelines.build import scoring

FEATURES = ["warmth", "shake"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = pd.DataFrame([[20.0, 0.1], [25.0, 0.2], [90.0, 3.0], [95.0, 4.0]], columns=FEATURES)
    joblib.dump(DecisionTreeClassifier().fit(rows, [0, 0, 1, 1]), tmp_path / "risk.joblib")
    names = DecisionTreeClassifier().fit(rows, ["ok", "ok", "bad", "bad"])
    joblib.dump(names, tmp_path / "names.joblib")
    # Trained without names of columns.
    line = LinearRegression().fit(np.array([[1.0], [2.0]]), [10.0, 20.0])
    (tmp_path / "line.pkl").write_bytes(pickle.dumps(line))
    return tmp_path


def score(folder: Path, model: str, columns: list[str], *rows: list[Any], **more: Any) -> list[Any]:
    scorer = scoring.scorer_of(Score(model, tuple(columns), **more), str(folder))
    sent = pickle.loads(pickle.dumps(scorer))
    given = [pd.Series(list(values)) for values in zip(*rows, strict=True)]
    found = sent.score(*given)
    return [None if value is None or value != value else value for value in found]


def test_a_batch_is_scored_and_rows_with_nulls_are_not(folder: Path) -> None:
    rows = [[22.0, 0.1], [92.0, 3.5], [None, 3.5]]
    assert score(folder, "risk.joblib", FEATURES, *rows) == [0.0, 1.0, None]
    proba = {"method": "predict_proba"}
    assert score(folder, "risk.joblib", FEATURES, *rows, **proba) == [0.0, 1.0, None]
    both = proba | {"type": "ARRAY<DOUBLE>"}
    assert score(folder, "risk.joblib", FEATURES, rows[1], **both) == [[0.0, 1.0]]
    names = {"type": "STRING"}
    assert score(folder, "names.joblib", FEATURES, *rows, **names) == ["ok", "bad", None]
    assert score(folder, "line.pkl", ["x"], [3.0]) == pytest.approx([30.0])
    assert score(folder, "line.pkl", ["x"], [None]) == [None]


def test_a_model_is_loaded_once_in_a_process(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scoring._LOADED.clear()
    loaded = []
    real = joblib.load
    monkeypatch.setattr(joblib, "load", lambda file: loaded.append(1) or real(file))
    for _ in range(5):
        score(folder, "risk.joblib", FEATURES, [22.0, 0.1])
    assert len(loaded) == 1


def test_a_large_model_is_loaded_from_its_path(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "_SENT_BYTES_MAX", 10)
    assert score(folder, "line.pkl", ["x"], [3.0]) == pytest.approx([30.0])


YAML = """\
name: risk
source: {topic: readings, schema: "warmth DOUBLE, shake DOUBLE"}
steps:
  - score:
      model: %s
      columns: [warmth, %s]
      as: %s
      method: %s
sink: {topic: risk}
"""


def written(folder: Path, *values: str) -> Path:
    path = folder / "risk.yaml"
    path.write_text(YAML % values)
    return path


def test_a_definition_is_read_and_written(folder: Path) -> None:
    pipeline = Pipeline.load(written(folder, "risk.joblib", "shake", "risk", "predict_proba"))
    step = Score("risk.joblib", ("warmth", "shake"), into="risk", method="predict_proba")
    assert pipeline.steps == (step,)
    assert Pipeline.from_json(pipeline.to_json()).steps == (step,)
    build.check(pipeline)


@pytest.mark.parametrize(
    ("values", "mistake"),
    [
        (("risk.txt", "shake", "risk", "predict"), r"risk\.yaml:5:7: .*'risk.txt' is not a model"),
        (("risk.joblib", "shake", "1st", "predict"), r"risk\.yaml:7:7: .*'1st' cannot name"),
        (("risk.joblib", "warmth", "risk", "predict"), r"risk\.yaml:6:7: .*twice"),
        (("risk.joblib", "shake", "risk", "guess"), r"risk\.yaml:8:7: .*'guess' is not known"),
    ],
)
def test_mistakes_are_told_with_their_place(
    folder: Path, values: tuple[str, ...], mistake: str
) -> None:
    with pytest.raises(DefinitionError, match=mistake):
        Pipeline.load(written(folder, *values))


def test_columns_and_files_that_are_not_there_are_told(folder: Path, capsys: Any) -> None:
    from moldau.cli.main import main

    path = written(folder, "risk.joblib", "shaek", "warmth", "predict")
    assert main(["pipelines", "validate", str(path)]) == 1
    told = capsys.readouterr()
    assert "there is no column 'shaek' (did you mean shake?)" in told.out + told.err
    assert "there is already a column 'warmth'" in told.out + told.err
    missing = Pipeline.load(written(folder, "gone.joblib", "shake", "risk", "predict"))
    with pytest.raises(PipelineError, match=r"gone\.joblib cannot be read") as told_error:
        build.check(missing)
    assert str(told_error.value.where).startswith("risk.yaml:4")
    (folder / "broken.joblib").write_bytes(b"no model")
    broken = Pipeline.load(written(folder, "broken.joblib", "shake", "risk", "predict"))
    with pytest.raises(PipelineError, match="cannot be loaded"):
        build.check(broken)


MODELS = Path(__file__).parent / "models"


def test_models_in_onnx_are_scored_as_those_of_scikit_learn() -> None:
    pytest.importorskip("onnxruntime")
    rows = [[22.0, 0.1], [92.0, 3.5], [None, 3.5]]
    assert score(MODELS, "risk.onnx", FEATURES, *rows) == [0.0, 1.0, None]
    proba = {"method": "predict_proba"}
    assert score(MODELS, "risk.onnx", FEATURES, *rows, **proba) == [0.0, 1.0, None]
    both = proba | {"type": "ARRAY<DOUBLE>"}
    assert score(MODELS, "risk.onnx", FEATURES, rows[1], **both) == [[0.0, 1.0]]


def test_inputs_of_onnx_have_their_own_types_and_columns() -> None:
    pytest.importorskip("onnxruntime")
    assert score(MODELS, "line.onnx", ["x"], [3.0]) == pytest.approx([30.0])
    # In the order of the definition, which need not be that of the model.
    shops = [[3.0, "a"], [3.0, "b"]]
    assert score(MODELS, "price.onnx", ["amount", "shop"], *shops) == pytest.approx([13.0, 23.0])
    with pytest.raises(PipelineError, match="no columns of the step: shop"):
        score(MODELS, "price.onnx", ["amount"], [3.0])


def test_onnx_without_its_package_names_it(folder: Path) -> None:
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        (folder / "m.onnx").write_bytes(b"")
        step = Score("m.onnx", ("a",))
        pipeline = Pipeline(
            "p", source=Topic("t", schema="a DOUBLE"), steps=[step], sink=Topic("u")
        )
        object.__setattr__(pipeline, "base", str(folder))
        with pytest.raises(PipelineError, match="onnxruntime"):
            build.check(pipeline)
    else:
        pytest.skip("onnxruntime is here")
