"""Batches in, records out."""
