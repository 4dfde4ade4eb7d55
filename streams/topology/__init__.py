"""The topology: stages, topics and tables as data, and its drawings."""
