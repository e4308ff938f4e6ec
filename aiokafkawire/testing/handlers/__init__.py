"""What a broker does with each request, a file per family; ``serving/apis.py`` is the table of them."""
