"""The same count, written for each library that `bench.streams_others` runs."""
