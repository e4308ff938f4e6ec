"""Reassignments of partitions: the plan, its file, throttles, and the progress."""
