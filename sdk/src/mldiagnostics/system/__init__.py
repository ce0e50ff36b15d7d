"""System metrics of devices and host, sampled in a thread."""
