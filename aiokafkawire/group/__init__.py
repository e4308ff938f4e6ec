"""Who reads what in a consumer group: what members tell one another, and the assignors that decide. Pure."""
