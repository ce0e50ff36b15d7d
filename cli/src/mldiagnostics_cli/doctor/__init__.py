"""`mldiag doctor`: working and broken parts, with commands that mend them."""
