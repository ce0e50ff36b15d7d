"""System metrics: what devices and host are doing, sampled on one thread of its own."""
