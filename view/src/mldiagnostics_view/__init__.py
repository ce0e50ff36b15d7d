"""The web view of runs, curves, goodput and profiles, from files or a cluster.

Dependencies between its packages: `endpoints` → `sources`, `curves`; `documents` and `windows` are pure.
"""
