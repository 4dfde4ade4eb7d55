"""Stages with state as Faust agents."""
