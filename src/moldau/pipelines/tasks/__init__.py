"""Small pipelines without Spark: stateless ones, several in one Python process."""
