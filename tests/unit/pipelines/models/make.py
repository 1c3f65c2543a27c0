"""Makes the models in ONNX that the tests of score steps use; needs the package skl2onnx.

python tests/unit/pipelines/models/make.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from skl2onnx import to_onnx  # type: ignore[import-not-found, unused-ignore]
from skl2onnx.common.data_types import (  # type: ignore[import-not-found, unused-ignore]
    DoubleTensorType,
    FloatTensorType,
    StringTensorType,
)
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

HERE = Path(__file__).parent
ROWS = np.array([[20.0, 0.1], [25.0, 0.2], [90.0, 3.0], [95.0, 4.0]], dtype="float32")

# Probabilities are a mapping of classes for each row, as skl2onnx writes them by default.
risk = DecisionTreeClassifier().fit(ROWS, [0, 0, 1, 1])
line = LinearRegression().fit(np.array([[1.0], [2.0]]), [10.0, 20.0])
shops = pd.DataFrame({"shop": ["a", "a", "b", "b"], "amount": [1.0, 2.0, 1.0, 2.0]})
encoded = ColumnTransformer([("shop", OneHotEncoder(), ["shop"])], remainder="passthrough")
price = make_pipeline(encoded, LinearRegression()).fit(shops, [11.0, 12.0, 21.0, 22.0])

for name, model, inputs in (
    ("risk", risk, [("rows", FloatTensorType([None, 2]))]),
    ("line", line, [("rows", DoubleTensorType([None, 1]))]),
    # An input for each column, by name.
    (
        "price",
        price,
        [("shop", StringTensorType([None, 1])), ("amount", FloatTensorType([None, 1]))],
    ),
):
    (HERE / f"{name}.onnx").write_bytes(to_onnx(model, initial_types=inputs).SerializeToString())
