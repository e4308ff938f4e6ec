"""Kafka in PySpark without a jar: a data source, ranges read by hand, offsets committed to groups."""
