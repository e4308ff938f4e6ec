"""Clients on a network that fails: producers and readers behind an emulated link to three brokers of Apache Kafka."""
