"""Summarizers of structured data: tables, trees, databases, calendars, certificates."""
