"""What a code base needs to move from other Kafka clients: what they have, found by LibCST, and the advice."""
