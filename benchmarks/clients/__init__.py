"""The measured clients: each is a program that runs one measurement, and prints its figures as a line of JSON."""
