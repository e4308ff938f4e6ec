"""The measured clients: each a program that does one thing once, and prints its figures as a line of JSON."""
