"""The producer: gathers records into batches, and sends them to the leaders of their partitions."""
