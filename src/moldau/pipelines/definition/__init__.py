"""Pipelines as definitions: what a pipeline is, before anything runs.

One pipeline is one `Pipeline` object, whether it was written in YAML (`load`), in Python (its
constructor) or comes back from the registry (`from_json`): all three go through the same checks
and have the same JSON form. Nothing here needs Spark.
"""

from __future__ import annotations

from moldau.pipelines.definition.code import Code
from moldau.pipelines.definition.model import (
    Cast,
    Drop,
    Python,
    Rename,
    RowStep,
    Sink,
    Source,
    Sql,
    Step,
    Table,
    Topic,
)
from moldau.pipelines.definition.pipeline import Pipeline
from moldau.pipelines.definition.places import Place
from moldau.pipelines.definition.tables import Csv, Delta, Iceberg, Jdbc, Json, Parquet
from moldau.pipelines.definition.transforms import (
    ColumnsToHeaders,
    Deduplicate,
    Explode,
    Flatten,
    HeadersToColumns,
    Mask,
)
from moldau.pipelines.definition.triggers import Trigger
from moldau.pipelines.definition.watermarks import Watermark

Definition = Pipeline

__all__ = [
    "Cast",
    "Code",
    "ColumnsToHeaders",
    "Csv",
    "Deduplicate",
    "Definition",
    "Delta",
    "Drop",
    "Explode",
    "Flatten",
    "HeadersToColumns",
    "Iceberg",
    "Jdbc",
    "Json",
    "Mask",
    "Parquet",
    "Pipeline",
    "Place",
    "Python",
    "Rename",
    "RowStep",
    "Sink",
    "Source",
    "Sql",
    "Step",
    "Table",
    "Topic",
    "Trigger",
    "Watermark",
]
