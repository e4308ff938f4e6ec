"""Clients whose brokers freeze, have full or slow disks, crash in loops, move partitions, throttle or are upgraded."""
