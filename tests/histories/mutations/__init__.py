"""Mutations of the client: each breaks one guarantee, and a scenario of the simulation must find it."""
