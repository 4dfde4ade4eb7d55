"""The gateway: the pages that people search on, and the API."""
