"""Operations of commands on a log: rebuild, replay, export, roots, dead letters."""
