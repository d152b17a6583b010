"""Converts settings to the options of librdkafka, Spark's Java client for Kafka, Spark, and Cassandra's driver.

Pure functions. The results contain secrets in plain text, as the clients require. Pass them to the client only.
"""

from typing import TYPE_CHECKING

from strandline.node.settings.fields import split_address
from strandline.node.settings.files import CredentialsFile
from strandline.node.settings.sections import CassandraSettings, KafkaSettings, SaslMechanism, SparkSettings

if TYPE_CHECKING:
    from strandline.store.connection import CassandraConnection, Tls


def librdkafka_options(kafka: KafkaSettings) -> dict[str, str | int | bool]:
    """The options that all confluent-kafka clients share: producers, consumers and admin clients."""
    options: dict[str, str | int | bool] = {
        "bootstrap.servers": ",".join(kafka.bootstrap_servers),
        "security.protocol": kafka.security_protocol,
        "socket.timeout.ms": kafka.request_timeout.milliseconds,
    }
    if kafka.uses_sasl and kafka.credentials_file is not None:
        options["sasl.mechanism"] = kafka.sasl_mechanism
        options["sasl.username"] = kafka.credentials_file.username
        options["sasl.password"] = kafka.credentials_file.password.get_secret_value()
    if kafka.tls_ca_file is not None:
        options["ssl.ca.location"] = str(kafka.tls_ca_file.path)
    if kafka.tls_certificate_file is not None and kafka.tls_key_file is not None:
        options["ssl.certificate.location"] = str(kafka.tls_certificate_file.path)
        options["ssl.key.location"] = str(kafka.tls_key_file.path)
    if kafka.tls_key_password_file is not None:
        options["ssl.key.password"] = kafka.tls_key_password_file.content.get_secret_value()
    return options | kafka.client


def java_kafka_options(kafka: KafkaSettings) -> dict[str, str]:
    """The options of the Java consumer in Spark's Kafka source. The caller has to prefix each name with `kafka.`.

    Unlike librdkafka, the Java client reads uncommitted records by default.
    """
    options = {
        "bootstrap.servers": ",".join(kafka.bootstrap_servers),
        "security.protocol": kafka.security_protocol,
        "request.timeout.ms": str(kafka.request_timeout.milliseconds),
        "isolation.level": "read_committed",
    }
    if kafka.uses_sasl and kafka.credentials_file is not None:
        options["sasl.mechanism"] = kafka.sasl_mechanism
        options["sasl.jaas.config"] = _jaas(kafka.sasl_mechanism, kafka.credentials_file)
    if kafka.tls_ca_file is not None:
        options["ssl.truststore.type"] = "PEM"
        options["ssl.truststore.location"] = str(kafka.tls_ca_file.path)
    if kafka.tls_certificate_file is not None and kafka.tls_key_file is not None:
        # A PEM keystore file has the certificate and the key in one file. Ours are separate, so they are passed as
        # text.
        options["ssl.keystore.type"] = "PEM"
        options["ssl.keystore.certificate.chain"] = kafka.tls_certificate_file.content
        options["ssl.keystore.key"] = kafka.tls_key_file.content.get_secret_value()
    if kafka.tls_key_password_file is not None:
        options["ssl.key.password"] = kafka.tls_key_password_file.content.get_secret_value()
    return options


def _jaas(mechanism: SaslMechanism, credentials: CredentialsFile) -> str:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    username, password = _java_quoted(credentials.username), _java_quoted(credentials.password.get_secret_value())
    return f"org.apache.kafka.common.security.{module} required username={username} password={password};"


def _java_quoted(text: str) -> str:
    """A quoted string for the JAAS parser: backslashes escape, and a line break would end it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "\\r").replace("\n", "\\n")
    return f'"{escaped}"'


def spark_properties(spark: SparkSettings) -> dict[str, str]:
    """The properties for `strandline.spark.session.spark_session`."""
    return {
        "spark.master": spark.master,
        "spark.driver.memory": str(spark.driver_memory),
        **spark.properties,
    }


def cassandra_connection(cassandra: CassandraSettings) -> "CassandraConnection":
    """The connection for `strandline.store.connection.connect`."""
    # Imported here because the supervisor needs only Kafka's options, and must not load Cassandra's driver.
    from strandline.store.connection import CassandraConnection, Credentials  # noqa: PLC0415

    servers = (split_address(address) for address in cassandra.contact_points)
    login = cassandra.credentials_file
    return CassandraConnection(
        contact_points=tuple((host, port or cassandra.port) for host, port in servers),
        port=cassandra.port,
        local_datacenter=cassandra.local_datacenter,
        keyspace=cassandra.keyspace,
        credentials=Credentials(login.username, login.password.get_secret_value()) if login is not None else None,
        tls=_tls(cassandra) if cassandra.tls else None,
        request_timeout=cassandra.request_timeout.seconds,
        connect_timeout=cassandra.connect_timeout.seconds,
    )


def _tls(cassandra: CassandraSettings) -> "Tls":
    from strandline.store.connection import Tls  # noqa: PLC0415 - see above

    ca, certificate = cassandra.tls_ca_file, cassandra.tls_certificate_file
    key, password = cassandra.tls_key_file, cassandra.tls_key_password_file
    return Tls(
        ca_file=ca.path if ca is not None else None,
        certificate_file=certificate.path if certificate is not None else None,
        key_file=key.path if key is not None else None,
        key_password=password.content.get_secret_value() if password is not None else "",
        check_hostname=cassandra.tls_check_hostname,
    )
