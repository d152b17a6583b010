"""Tables of properties that are passed to librdkafka and Spark unchanged, except for properties that are not allowed.

Secrets must not be in a settings file, and Strandline's guarantees require fixed values of some properties. Each
finding has the reason, and the setting to use instead.
"""

from collections.abc import Iterator, Mapping

from pydantic import PlainValidator

from strandline.node.settings.findings import Finding, invalid, names_secret, validation_error

_OWN_SETTING = "has a setting of its own"
_READ_COMMITTED = "is set by Strandline: every reader is read_committed"
_CHECKPOINTS = "is set by Strandline: the manifest, not Kafka, knows what has been stored"
_DURABLE = "is set by Strandline: a sample is acknowledged only once Kafka has it for good"

_KAFKA_OWN = {
    "bootstrap.servers": (_OWN_SETTING, "Use kafka.bootstrap_servers"),
    "metadata.broker.list": (_OWN_SETTING, "Use kafka.bootstrap_servers"),
    "security.protocol": (_OWN_SETTING, "Use kafka.security_protocol"),
    "sasl.mechanism": (_OWN_SETTING, "Use kafka.sasl_mechanism"),
    "sasl.mechanisms": (_OWN_SETTING, "Use kafka.sasl_mechanism"),
    "sasl.username": (_OWN_SETTING, "Use kafka.credentials_file"),
    "ssl.ca.location": (_OWN_SETTING, "Use kafka.tls_ca_file"),
    "ssl.certificate.location": (_OWN_SETTING, "Use kafka.tls_certificate_file"),
    "ssl.key.location": (_OWN_SETTING, "Use kafka.tls_key_file"),
    "socket.timeout.ms": (_OWN_SETTING, "Use kafka.request_timeout"),
    "isolation.level": (_READ_COMMITTED, "Leave it out"),
    "enable.auto.commit": (_CHECKPOINTS, "Leave it out"),
    "enable.auto.offset.store": (_CHECKPOINTS, "Leave it out"),
    "auto.offset.reset": (_CHECKPOINTS, "Leave it out"),
    "group.id": (_CHECKPOINTS, "Leave it out"),
    "acks": (_DURABLE, "Leave it out"),
    "request.required.acks": (_DURABLE, "Leave it out"),
    "enable.idempotence": (_DURABLE, "Leave it out"),
    "transactional.id": (_DURABLE, "Leave it out"),
}
_KAFKA_SECRETS = {
    "sasl.password": "Put it on line 2 of the file that kafka.credentials_file names",
    "sasl.jaas.config": "Put user and password into the file that kafka.credentials_file names",
    "ssl.key.password": "Put it into the file that kafka.tls_key_password_file names",
    "ssl.key.pem": "Put it into the file that kafka.tls_key_file names",
    "ssl_key": "Put it into the file that kafka.tls_key_file names",
}
_KAFKA_ELSEWHERE = (
    "Put secrets into the files that kafka.credentials_file, kafka.tls_key_file and kafka.tls_key_password_file name"
)

_SPARK_OWN = {
    "spark.master": (_OWN_SETTING, "Use spark.master in the table [spark]"),
    "spark.driver.memory": (_OWN_SETTING, "Use spark.driver_memory in the table [spark]"),
}
_SPARK_ELSEWHERE = "Put it into the spark-defaults.conf of the folder $SPARK_CONF_DIR, which Spark reads itself"


def flattened(table: Mapping[str, object]) -> dict[str, object]:
    """Convert nested tables to one with dotted names, since TOML parses `fetch.min.bytes = 1` as nested tables."""
    flat: dict[str, object] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            flat.update({f"{name}.{below}": item for below, item in flattened(value).items()})
        else:
            flat[name] = value
    return flat


def _table(value: object) -> dict[str, object]:
    if not isinstance(value, Mapping):
        # It may contain a password.
        raise invalid("is not a table", "Lines of `property = value` below the table's name", hidden=True)
    return flattened({str(name): item for name, item in value.items()})


def _kafka_properties(value: object) -> dict[str, str | int | bool]:
    table = _table(value)
    if found := list(_kafka_findings(table)):
        raise validation_error(found)
    return {name: _librdkafka_value(item) for name, item in table.items()}


def _kafka_findings(table: Mapping[str, object]) -> Iterator[Finding]:
    for name, item in table.items():
        if name in _KAFKA_SECRETS or names_secret(name):
            remedy = _KAFKA_SECRETS.get(name, _KAFKA_ELSEWHERE)
            yield Finding("is a secret, and secrets are not allowed here", remedy, (name,), hidden=True)
        elif name in _KAFKA_OWN:
            what, remedy = _KAFKA_OWN[name]
            yield Finding(what, remedy, (name,))
        elif not isinstance(item, str | int | float):
            yield Finding("is not text, a number, true or false", "One value", (name,), hidden=True)


def _spark_properties(value: object) -> dict[str, str]:
    table = _table(value)
    if found := list(_spark_findings(table)):
        raise validation_error(found)
    return {name: _as_text(item) for name, item in table.items()}


def _spark_findings(table: Mapping[str, object]) -> Iterator[Finding]:
    for name, item in table.items():
        if names_secret(name):
            yield Finding("is a secret, and secrets are not allowed here", _SPARK_ELSEWHERE, (name,), hidden=True)
        elif name in _SPARK_OWN:
            what, remedy = _SPARK_OWN[name]
            yield Finding(what, remedy, (name,))
        elif not name.startswith("spark."):
            yield Finding('does not begin with "spark."', f"Perhaps spark.{name}", (name,), hidden=True)
        elif not isinstance(item, str | int | float):
            yield Finding("is not text, a number, true or false", "One value", (name,), hidden=True)


def _librdkafka_value(item: object) -> str | int | bool:
    return item if isinstance(item, int) else _as_text(item)


def _as_text(item: object) -> str:
    """The text of a value for Java and C programs: true instead of True."""
    return str(item).lower() if isinstance(item, bool) else str(item)


kafka_properties = PlainValidator(_kafka_properties)
spark_properties = PlainValidator(_spark_properties)
