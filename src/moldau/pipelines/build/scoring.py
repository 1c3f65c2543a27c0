"""Rows scored by a model, in batches: the model is loaded once in each of Spark's workers.

A model of up to 64 MB travels with the query, so only the machine of the control loop needs the
file. A larger one is loaded from the same path on every machine that runs Spark.
"""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from typing import Any, Final

from moldau.pipelines.definition.scoring import Score
from moldau.pipelines.errors import PipelineError

__all__ = ["Scorer", "load_model", "scored"]

_SENT_BYTES_MAX: Final = 64 * 1024 * 1024
#: Models that this process has loaded, by what they are: a worker has few, and lives long.
_LOADED: dict[str, Any] = {}
_LOADED_MAX: Final = 8


def scored(step: Score, frame: Any, base: str) -> Any:
    """The frame with the column of scores."""
    import pandas as pd
    from pyspark.sql.functions import col
    from pyspark.sql.pandas.functions import pandas_udf

    if step.into in frame.columns:
        raise _wrong(step, f"there is already a column {step.into!r}")
    scorer = scorer_of(step, base)

    def score(*columns: Any) -> Any:
        return scorer.score(*columns)

    # Spark reads here what is given and returned: columns of a batch.
    score.__annotations__ = {"columns": pd.Series, "return": pd.Series}
    # Its types know functions of a fixed number of columns only.
    make: Any = pandas_udf
    function = make(score, returnType=step.type).asNondeterministic()
    return frame.withColumn(step.into, function(*[col(f"`{name}`") for name in step.columns]))


def load_model(step: Score, base: str) -> Any:
    """The model itself; `PipelineError` says why it cannot be used."""
    scorer = scorer_of(step, base)
    try:
        return scorer.model()
    except PipelineError:
        raise
    except Exception as error:
        raise _wrong(
            step, f"the model {step.model} cannot be loaded: {type(error).__name__}: {error}"
        ) from None


def scorer_of(step: Score, base: str) -> Scorer:
    path = Path(base, step.model)
    try:
        size = path.stat().st_size
        data = path.read_bytes() if size <= _SENT_BYTES_MAX else None
    except OSError as error:
        raise _wrong(step, f"the model {path} cannot be read: {error.strerror}") from None
    digest = hashlib.sha256(data or f"{path} {size}".encode()).hexdigest()
    return Scorer(str(path), data, digest, step.columns, step.method, step.type)


class Scorer:
    """Travels to workers by pickle."""

    def __init__(
        self,
        path: str,
        data: bytes | None,
        digest: str,
        columns: tuple[str, ...],
        method: str,
        result: str,
    ) -> None:
        self._path = path
        self._data = data
        self._digest = digest
        self._columns = columns
        self._method = method
        self._is_number = result.strip().upper() in ("DOUBLE", "FLOAT", "REAL")
        self._is_list = result.strip().upper().startswith("ARRAY")

    def model(self) -> Any:
        """Loaded once in a process, however many batches it scores."""
        if self._digest not in _LOADED:
            if len(_LOADED) >= _LOADED_MAX:
                _LOADED.clear()
            _LOADED[self._digest] = self._load()
        return _LOADED[self._digest]

    def _load(self) -> Any:
        if self._path.endswith(".onnx"):
            return _Onnx(self._data or self._path)
        try:
            import joblib  # type: ignore[import-untyped]
        except ImportError:
            raise PipelineError(
                "a score step with a model of scikit-learn needs the packages scikit-learn and "
                "joblib wherever Spark's Python runs",
                hint="pip install scikit-learn",
            ) from None
        return joblib.load(self._path if self._data is None else io.BytesIO(self._data))

    def score(self, *columns: Any) -> Any:
        """Of Pandas' columns, those with a null in any of them stay without a score."""
        import pandas as pd

        rows = pd.concat(columns, axis=1, keys=self._columns)
        complete = rows.notna().all(axis=1)
        result = pd.Series([None] * len(rows), index=rows.index, dtype=object)
        if complete.any():
            found = self._scores(self.model(), rows[complete])
            result[complete] = pd.Series(found, index=rows.index[complete], dtype=object)
        return result.astype("float64") if self._is_number else result

    def _scores(self, model: Any, rows: Any) -> list[Any]:
        given = rows if hasattr(model, "feature_names_in_") else rows.to_numpy()
        found = getattr(model, self._method)(given)
        if getattr(found, "ndim", 1) > 1 and not self._is_list:
            # Of several classes the last, which of two is the one that is asked for.
            found = found[:, -1]
        return [value.tolist() if hasattr(value, "tolist") else value for value in found]


class _Onnx:
    """A model in ONNX's format, with the methods of one of scikit-learn's."""

    def __init__(self, model: bytes | str) -> None:
        try:
            import onnxruntime  # type: ignore[import-not-found, import-untyped, unused-ignore]
        except ImportError:
            raise PipelineError(
                "a score step with a model in ONNX needs the package onnxruntime wherever Spark's "
                "Python runs",
                hint="pip install onnxruntime",
            ) from None
        options = onnxruntime.SessionOptions()
        # Spark runs as many workers as there are cores.
        options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
        self._session = onnxruntime.InferenceSession(model, options)
        self._inputs = {each.name: each.type for each in self._session.get_inputs()}
        #: As models of scikit-learn say that they take a table and not only its values.
        self.feature_names_in_ = list(self._inputs)

    def predict(self, rows: Any) -> Any:
        found = self._run(rows)[0]
        return found[:, 0] if found.ndim > 1 and found.shape[1] == 1 else found

    def predict_proba(self, rows: Any) -> Any:
        import numpy

        found = self._run(rows)[-1]
        if isinstance(found, list):
            # Converters of scikit-learn give a mapping of classes for each row.
            return numpy.array([list(each.values()) for each in found])
        return found

    decision_function = predict_proba

    def _run(self, rows: Any) -> Any:
        return self._session.run(None, self._given(rows))

    def _given(self, rows: Any) -> dict[str, Any]:
        """One input takes all columns; several take one column each, by name."""
        if len(self._inputs) == 1:
            [(name, kind)] = self._inputs.items()
            return {name: rows.to_numpy(dtype=_number_type(kind))}
        if missing := [name for name in self._inputs if name not in rows.columns]:
            raise PipelineError(
                f"score: the model has inputs that are no columns of the step: {', '.join(missing)}"
            )
        return {
            name: rows[[name]].to_numpy(dtype=_number_type(kind))
            for name, kind in self._inputs.items()
        }


#: Of ONNX's types those that Numpy calls by another name.
_NUMBER_TYPES: Final = {"float": "float32", "double": "float64", "string": "object"}


def _number_type(kind: str) -> str:
    """Of a type such as `tensor(float)`."""
    name = kind.removeprefix("tensor(").removesuffix(")")
    return _NUMBER_TYPES.get(name, name)


def _wrong(step: Score, message: str) -> PipelineError:
    where = str(step.place) if step.place else None
    return PipelineError(f"score: {message}", where=where)
