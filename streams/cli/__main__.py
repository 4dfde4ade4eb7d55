"""`python -m streams.cli`: the program, run by the current interpreter."""

from streams.cli import main

main()
