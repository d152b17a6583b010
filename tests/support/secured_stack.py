"""A stack whose servers require TLS, a user and a password."""

from pathlib import Path

from strandline.node.stack.options import CassandraClient, StackOptions
from support.certificates import STORE_PASSWORD, Certificates

# A password with all characters that must be escaped in properties and JAAS.
KAFKA_LOGIN = ("shard", 'pass "word" \\ of kafka')
CASSANDRA_LOGIN = ("cassandra", "cassandra")
"""The default user of a new Cassandra."""


def secured_options(folder: Path, certificates: Certificates) -> StackOptions:
    """Options for servers that require TLS, a user and a password: those of `KAFKA_LOGIN` and `CASSANDRA_LOGIN`."""
    user, password = KAFKA_LOGIN
    quoted = '"' + password.replace("\\", "\\\\").replace('"', '\\"') + '"'
    plain_login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    return StackOptions(
        folder,
        extra_kafka_properties={
            "listener.security.protocol.map": "BROKER:SASL_SSL,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.broker.plain.sasl.jaas.config": (
                f'{plain_login} username="{user}" password={quoted} user_{user}={quoted};'
            ),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(certificates.server_bundle),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(certificates.ca),
            "ssl.client.auth": "required",
        },
        kafka_client={
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": password,
            "ssl.ca.location": str(certificates.ca),
            "ssl.certificate.location": str(certificates.client_certificate),
            "ssl.key.location": str(certificates.client_key),
        },
        extra_cassandra_yaml={
            "authenticator": "PasswordAuthenticator",
            "client_encryption_options": {
                "enabled": True,
                "optional": False,
                "keystore": str(certificates.server_store),
                "keystore_password": STORE_PASSWORD,
                "store_type": "PKCS12",
            },
        },
        cassandra_client=CassandraClient(login=CASSANDRA_LOGIN, ca=certificates.ca),
    )
