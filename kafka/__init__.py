"""What everything that talks to Kafka shares: how clients are made, and what their errors mean.

In come client options and errors of the library, out go clients and errors of our own tree. It knows neither shards nor
jobs: which right a refused caller lacks is for the caller to say.
"""
