"""The Spark that hosts pipelines: its Java, its Connect server, its connector, its executors."""
