"""Rows about a cluster's nodes, features and quorum."""
