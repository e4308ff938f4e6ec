"""Consumer groups: membership, assignors, and the group's committed offsets."""
