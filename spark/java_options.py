"""Options of the JVM that a session's driver runs in."""

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
"""The property of Spark that holds them."""

FAST_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
"""For a session that ends within a minute: it halves the processor time of its start, and would slow a long replay."""
