"""What commands do to a log: rebuild, replay, export, roots, dead letters."""
