"""The pairs of calls, one file for each peer."""
