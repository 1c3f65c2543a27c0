"""Topics as DataFrames, and the Spark that hosts pipelines.

Nothing here is imported by the broker or the client: `pip install moldau[spark]` brings what it
needs.
"""
