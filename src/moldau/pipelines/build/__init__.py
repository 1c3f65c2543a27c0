"""Builds the queries of a pipeline in Spark.

`start` begins the pipeline's queries: one named like the pipeline and, if its sink cannot hold bad
records beside good ones, a second one named `<pipeline>.dead-letter`. `check` does everything but
that, and `explain` shows the plan. All three raise `PipelineError` for what is wrong with the
definition.
"""

from __future__ import annotations

from moldau.pipelines.build.starting import check, explain, start

__all__ = ["check", "explain", "start"]
