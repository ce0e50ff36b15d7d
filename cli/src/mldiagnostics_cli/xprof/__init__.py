"""`mldiag xprof`: servers of XProf over log directories.

They are on this machine, on Kubernetes, or on Compute Engine.
"""
