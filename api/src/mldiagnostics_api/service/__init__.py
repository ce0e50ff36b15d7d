"""What every process of ours in a cluster does alike: settings, logs, the API server's words, the cluster's name."""
