"""`python -m streams.cli`: the program, by the interpreter that runs this one."""

from streams.cli.app import main

main()
