"""The `strandline` command: one thin module per subcommand.

In: the arguments of the shell. Out: one report or one error, and an exit code.

A command reads its options, gets the settings from `Context`, calls the code that does the work and passes the report
to `Context.output`. Commands don't print, don't catch errors of the work, and don't know how their report is rendered:
`main` and `strandline.node.output` do this for all of them.
"""
