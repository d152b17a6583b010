"""The `strandline` command: one thin module for each verb.

A command reads its options, asks `Context` for the settings, calls the code that does the work and hands the report
to `Context.output`. Arguments come in from the shell; one report or one error, and an exit code, go out. No command
prints, catches errors of the work or knows how its report is rendered: `main` and `strandline.node.output` do that for
all.
"""
