"""`mldiag xprof`: servers of XProf over log directories, on this machine and on Kubernetes."""
