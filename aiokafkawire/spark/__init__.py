"""Kafka in PySpark without a jar: a data source, reads of offset ranges, and offset commits to groups."""
