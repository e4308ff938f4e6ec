"""The verb ``top``: brokers, topics and groups of a running cluster, in the terminal."""
