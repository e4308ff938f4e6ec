"""Fault rules of tests: injected errors, lost responses and delays, and a log of requests."""
