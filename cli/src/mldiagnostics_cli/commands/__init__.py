"""Arguments and help of each command; each imports its work when it runs."""
