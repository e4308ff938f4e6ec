"""The logs of partitions: validation, producer states and reads."""
