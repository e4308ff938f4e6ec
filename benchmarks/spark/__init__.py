"""Kafka in Spark: our data source beside Spark's own, in one session."""
