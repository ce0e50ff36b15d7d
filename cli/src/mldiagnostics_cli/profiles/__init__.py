"""`mldiag profiles`: sessions of runs, directories and buckets in the layout of XProf."""
