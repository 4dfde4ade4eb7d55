"""Registrations of servers: their template, their time-to-live, their summary."""
