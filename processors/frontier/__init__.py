"""The frontier: which URL is fetched when, and which URLs are gone."""
