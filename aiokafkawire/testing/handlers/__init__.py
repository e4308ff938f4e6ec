"""The request handlers, in one module for each group of related APIs; ``serving/apis.py`` has a table of them."""
