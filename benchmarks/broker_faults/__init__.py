"""Clients whose brokers freeze, fill their disks, crash in loops, move partitions, throttle or are upgraded."""
