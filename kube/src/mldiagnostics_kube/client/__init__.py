"""The client of the API server: credentials, requests, failures."""
