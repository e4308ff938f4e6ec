"""Runs the tests of aiokafka itself on ``aiokafkawire.aiokafka``, against a real broker."""
