"""aiokafka's modules about groups: the assignors, and what members exchange."""
