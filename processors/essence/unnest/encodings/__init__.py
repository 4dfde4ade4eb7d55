"""Unnesters of compressed files."""
