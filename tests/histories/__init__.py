"""Histories: what a run of clients has done, as events, and a checker that finds what must not happen in them."""
