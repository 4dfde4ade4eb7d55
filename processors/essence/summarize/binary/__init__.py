"""Summarizers of executables, class files and unrecognized files."""
