"""Packages of Java that Spark does not bring: which one a failure is about.

Pure.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["missing_package"]

#: What Java says of a place that it cannot reach, and the package that reaches it.
_PLACES: Final = (
    (r"s3[an]?", "org.apache.hadoop:hadoop-aws:VERSION", "S3AFileSystem"),
    (r"abfss?|wasbs?", "org.apache.hadoop:hadoop-azure:VERSION", "AzureBlobFileSystem"),
    (r"gs", "com.google.cloud.bigdataoss:gcs-connector:hadoop3-VERSION", "GoogleHadoopFileSystem"),
)


def missing_package(text: str) -> str | None:
    """What to do where Spark lacks the package for a place; None if that is not the matter."""
    for scheme, package, name in _PLACES:
        unknown = rf'No FileSystem for scheme:? "?({scheme})"?(?!\w)'
        if re.search(unknown, text) or re.search(rf"Class \S*{name} not found", text):
            return (
                f"moldau spark start --packages {package}, where VERSION is that of Spark's Hadoop "
                "(hadoop-client-api-*.jar in its jars)"
            )
    return None
