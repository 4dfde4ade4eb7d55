"""`python -m streams.cli`: the program, by the interpreter that runs this one."""

from streams.cli import main

main()
