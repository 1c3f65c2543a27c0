"""Pipelines: declared flows of data between topics, tables and files, kept running on Spark.

    from moldau.pipelines import Parquet, Pipeline, Sql, Topic

    Pipeline(
        "big-orders",
        source=Topic("orders", schema="id STRING, amount DOUBLE"),
        steps=[Sql("SELECT id, amount FROM input WHERE amount > 100")],
        sink=Parquet("big-orders"),
    )

Importing this costs nothing until a name is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moldau.pipelines.api import PipelineInfo, Pipelines
    from moldau.pipelines.definition.code import Code
    from moldau.pipelines.definition.model import (
        Cast,
        Drop,
        Python,
        Rename,
        RowStep,
        Sql,
        Table,
        Topic,
    )
    from moldau.pipelines.definition.outputs import Output
    from moldau.pipelines.definition.pipeline import Pipeline
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
    from moldau.pipelines.errors import DefinitionError, PipelineError

__all__ = [
    "Avro",
    "Cast",
    "Code",
    "ColumnsToHeaders",
    "Csv",
    "Deduplicate",
    "DefinitionError",
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
    "PipelineError",
    "PipelineInfo",
    "Pipelines",
    "Python",
    "Rename",
    "RowStep",
    "Score",
    "Sql",
    "Table",
    "Text",
    "Topic",
    "Trigger",
    "Watermark",
    "Window",
    "Xml",
]

_MODULES = {
    "Window": "definition.relations",
    "Lookup": "definition.relations",
    "Join": "definition.relations",
    "Output": "definition.outputs",
    "Avro": "definition.tables",
    "Mask": "definition.transforms",
    "HeadersToColumns": "definition.transforms",
    "Flatten": "definition.transforms",
    "Explode": "definition.transforms",
    "Deduplicate": "definition.transforms",
    "ColumnsToHeaders": "definition.transforms",
    "Cast": "definition.model",
    "Code": "definition.code",
    "Csv": "definition.tables",
    "DefinitionError": "errors",
    "Delta": "definition.tables",
    "Drop": "definition.model",
    "Iceberg": "definition.tables",
    "Jdbc": "definition.tables",
    "Json": "definition.tables",
    "Parquet": "definition.tables",
    "Pipeline": "definition.pipeline",
    "PipelineError": "errors",
    "PipelineInfo": "api",
    "Pipelines": "api",
    "Python": "definition.model",
    "Rename": "definition.model",
    "RowStep": "definition.model",
    "Score": "definition.scoring",
    "Sql": "definition.model",
    "Table": "definition.model",
    "Text": "definition.tables",
    "Topic": "definition.model",
    "Trigger": "definition.triggers",
    "Watermark": "definition.watermarks",
    "Xml": "definition.tables",
}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{module}"), name)
