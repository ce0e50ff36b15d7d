"""The command line `mldiag`: captures, runs and goodput of ML workloads.

`commands` has the arguments and the help of each command, and imports its work when it runs: help and completion
load no read model, no gRPC and no client of a store.
"""
