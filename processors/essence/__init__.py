"""Essence: recognize the type of an object, unnest it, select, and summarize by type (seed 003)."""
