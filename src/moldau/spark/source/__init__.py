"""Topics as a source of Spark's batch and streaming queries.

`options` says what a user may ask for, `planning`, `ranges` and `limits` what a batch reads, `lag`
how far a query is behind: all pure. `cluster` asks the brokers, `mirror` keeps a consumer group's
offsets beside the query's, `stream` and `readers` are what Spark calls.
"""
