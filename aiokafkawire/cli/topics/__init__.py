"""The tables of topics and partitions, and the points before which records are deleted."""
