"""What a broker does with each request, a file per family; :mod:`aiokafkawire.testing.apis` is the table of them."""
