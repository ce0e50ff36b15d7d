"""`python -m demo`: the demo on the first cluster that this machine can have, else on local processes.

`DEMO=local` chooses local processes, `CLUSTER=` a kind of cluster, `DEMO_OUTPUT=` the folder of the files.
"""
