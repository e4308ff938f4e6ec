"""Benchmarks of aiokafkawire beside its peers; see README.md."""
