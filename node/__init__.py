"""What an operator meets: the `strandline` command, its settings, its logs and its output.

Settings come in from a file and the environment and leave as options for the clients of Kafka, Cassandra and Spark.
Commands come in from the shell and leave as one report, as text or as JSON, and an exit code. This package sits on top
of all the others and may use each of them; none of them knows that it exists, so what they need to know about the
world is handed to them as values.
"""
