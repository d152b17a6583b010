"""Options for the JVM of a session's driver."""

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
"""The Spark property for these options."""

FAST_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
"""For a session that ends within a minute: halves the CPU time of its start, but would slow down a long replay."""
