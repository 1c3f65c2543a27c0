"""Commands for data pipelines and the Spark that runs them."""
