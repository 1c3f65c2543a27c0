"""Commands for the cluster as a whole: configurations, features, quorum, log directories."""
