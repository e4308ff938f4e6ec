"""Handlers that clients call with each record: ``process`` beside FastStream and Confluent's Parallel Consumer."""
