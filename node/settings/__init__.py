"""Settings: read from a file and the environment, checked as a whole, and turned into options of clients.

In flow a TOML file, environment variables and the files with secrets that they name; out flow one frozen `Settings` or
one `SettingsError` with every problem, and, through `clients` and `shards`, the options that librdkafka, Spark,
Cassandra's driver and a shard take. This package opens no connection and knows none of the code that uses the settings.

A value passes through here as follows: `sources` reads it and notes where it stood (`location` finds the line),
`sections`, `dataset` and `shard_sections` say what settings there are and, with `fields`, `files`, `properties` and
`security`, what makes sense for each, and `load` puts both together; what is wrong leaves as `findings` and becomes
`problems`.
"""

from strandline.node.settings.dataset import DatasetSettings
from strandline.node.settings.load import LoadedSettings, load_settings, load_with_origins
from strandline.node.settings.problems import Problem, SettingsError
from strandline.node.settings.sections import (
    CassandraSettings,
    KafkaSettings,
    LogSettings,
    Settings,
    SparkSettings,
    StackSettings,
)
from strandline.node.settings.shard_sections import ShardSettings, StoreSettings
from strandline.node.settings.sources import Origin
from strandline.node.settings.units import ByteSize, Duration

__all__ = [
    "ByteSize",
    "CassandraSettings",
    "DatasetSettings",
    "Duration",
    "KafkaSettings",
    "LoadedSettings",
    "LogSettings",
    "Origin",
    "Problem",
    "Settings",
    "SettingsError",
    "ShardSettings",
    "SparkSettings",
    "StackSettings",
    "StoreSettings",
    "load_settings",
    "load_with_origins",
]
