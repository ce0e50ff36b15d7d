"""`mldiag profiles`: sessions in the layout of XProf.

They are those of runs, directories and buckets.
"""
