"""Instances that process records, each a process that is killed again and again while brokers die as well."""
