"""Pipelines: declared flows of data between topics, tables and files, kept running on Spark."""
