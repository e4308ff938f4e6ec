"""An in-process Kafka broker for tests, demos and benchmarks; see :mod:`aiokafkawire.testing.broker`."""
