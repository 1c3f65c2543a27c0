"""The same programs, written for each library that `bench.streams_others` runs.

Arguments: bootstrap, inputs (with commas), output, application id, guarantee, what (`stateless`,
`count`, `windowed`, `stream-table`, `stream-stream`), store (`disk`, `memory`), state directory.
"""
