"""Readers of file formats that both unnesters and summarizers use."""
