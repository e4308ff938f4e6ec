"""``aiokafkawire apply`` and ``export``: a cluster's topics, configs, ACLs, quotas and users as a file."""
