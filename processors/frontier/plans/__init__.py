"""Options of one root, as its plan states them: scope, rewriting, hours, local files."""
