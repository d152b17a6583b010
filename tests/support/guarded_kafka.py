"""A Kafka with authentication and authorization, which can be made to hang."""

from pathlib import Path

from strandline.node.stack import StackOptions
from support.own_kafka import OwnKafka

ROOT, GUEST = "root", "guest"
"""A user with all permissions, and one with none."""

_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def _password(user: str) -> str:
    return f"{user}-password"


def _client(user: str, password: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": password,
    }


def guarded_options(folder: Path) -> StackOptions:
    known = "".join(f' user_{user}="{_password(user)}"' for user in (ROOT, GUEST))
    return StackOptions(
        folder,
        extra_kafka_properties={
            "listener.security.protocol.map": "BROKER:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.broker.plain.sasl.jaas.config": (
                f'{_MODULE} username="{ROOT}" password="{_password(ROOT)}"{known};'
            ),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            # The broker connects to its controller without a user.
            "super.users": f"User:{ROOT};User:ANONYMOUS",
        },
        kafka_client=_client(ROOT, _password(ROOT)),
    )


class GuardedKafka(OwnKafka):
    def __init__(self, folder: Path) -> None:
        super().__init__(guarded_options(folder))

    def client(self, user: str = ROOT, password: str | None = None) -> dict[str, str]:
        return {"bootstrap.servers": self.bootstrap, **_client(user, password or _password(user))}
