"""The sticky assignor of aiokafka's API."""
