"""Transactions: their coordinators, and what follows once one is decided."""
