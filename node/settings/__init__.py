"""Settings: read from a file and the environment, checked as a whole, and turned into options of clients.

Input: a TOML file, environment variables, and the files with secrets that they name. Output: one frozen `Settings`, or
one `SettingsError` with all problems. `clients` converts settings to the options of librdkafka, Spark and Cassandra's
driver. This package opens no connections, and must not know the code that uses the settings.

`sources` reads the values and where each was written (`location` finds the line). `sections`, `dataset`,
`shard_sections`, `http_sections` and `job_sections` declare the settings and, with `fields`, `files`, `properties` and
`security`, validate them. `load` combines both. Validators raise `findings`, which `problems` turns into messages with
the place of the value.
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
