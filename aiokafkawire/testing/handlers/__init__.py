"""The handlers of requests, a module per family; ``serving/apis.py`` has the table of them."""
