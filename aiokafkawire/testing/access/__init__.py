"""The authorization of requests: what a client may do, and what it may see."""
