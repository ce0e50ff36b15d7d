"""Work of `mldiag doctor`: working and broken parts, and the commands that mend them."""
