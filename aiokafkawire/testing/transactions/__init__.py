"""Transactions: their coordinators, and the completion of decided transactions."""
