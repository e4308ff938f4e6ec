"""The entities and changes of the verb ``quotas``, and the quotas in effect for a client."""
