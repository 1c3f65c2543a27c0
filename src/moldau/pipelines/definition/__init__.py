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
from moldau.pipelines.definition.outputs import Output
from moldau.pipelines.definition.pipeline import Pipeline
from moldau.pipelines.definition.places import Place
from moldau.pipelines.definition.relations import Join, Lookup, Window
from moldau.pipelines.definition.scoring import Score
from moldau.pipelines.definition.tables import (
    Avro,
    Csv,
    Delta,
    Iceberg,
    Jdbc,
    Json,
    Parquet,
    Text,
    Xml,
)
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
    "Avro",
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
    "Join",
    "Json",
    "Lookup",
    "Mask",
    "Output",
    "Parquet",
    "Pipeline",
    "Place",
    "Python",
    "Rename",
    "RowStep",
    "Score",
    "Sink",
    "Source",
    "Sql",
    "Step",
    "Table",
    "Text",
    "Topic",
    "Trigger",
    "Watermark",
    "Window",
    "Xml",
]
