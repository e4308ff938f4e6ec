"""Orders of tests: errors, lost answers and delays where they are wanted, and a journal of what was asked."""
