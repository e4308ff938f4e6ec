"""Rows about the log directories of brokers."""
