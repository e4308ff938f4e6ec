"""Kafka in Spark: our data source compared with Spark's own, in one session."""
