"""Reports of the processes of runs, and views of them."""
