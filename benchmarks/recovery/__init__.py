"""Code of the programs that measure how soon clients recover: producers and readers of each, and their records."""
