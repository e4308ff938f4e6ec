"""The way of a release: distributions, checks, and the tag that publishes; README.md beside this file explains it."""
