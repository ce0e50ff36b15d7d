"""The installed product in a cluster: its policy, volume, name and objects."""
