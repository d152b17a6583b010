"""What the `strandline job` commands need to plan, run, show and change bulk jobs.

In: settings, options of the command line, and the jobs in the store. Out: plans, workers that are built from the
settings, and reports. `opening` builds boards and workers; `importing`, `sending` and `exporting` plan jobs of each
kind; `reports` has the reports for commands and HTTP. The work itself is done by `strandline.jobs`. `reports` and
`changing` are also used by the HTTP front and must not import what reads files or encodes records.
"""
