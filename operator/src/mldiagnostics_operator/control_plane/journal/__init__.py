"""The journal of reports, and the accounts made of it."""
