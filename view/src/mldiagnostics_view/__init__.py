"""The web view: runs, curves, goodput and profiles in a browser, from files or a cluster.

Dependencies between its packages: `endpoints` → `sources`, `curves`; `documents` and `windows` are pure.
"""
