"""aiokafka's assignors, one module for each."""
