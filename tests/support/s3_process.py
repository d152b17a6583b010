"""The process of `support.s3_server`: moto's S3 on a free port of loopback, in memory.

moto checks the signature of each request with the secret, and the permissions of the user, as S3 does. Its first line
on stdout is JSON with the address and the keys. It ends when its stdin is closed, so it can't outlive the tests.
"""

import json
import os
import sys
import threading

from moto import settings
from moto.core import DEFAULT_ACCOUNT_ID
from moto.iam.models import iam_backends
from moto.s3.models import s3_backends
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

BUCKET = "metrics-archive"
# Exactly those that docs/pipeline.md lists.
PERMITTED = ("s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")


class QuietHandler(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        """Log nothing: nobody reads it, and a full pipe would stop the server."""


def user_keys(name: str, actions: tuple[str, ...]) -> tuple[str, str]:
    """A user with permission for some actions."""
    users = iam_backends[DEFAULT_ACCOUNT_ID]["aws"]
    users.create_user("us-east-1", name, "/")
    if actions:
        statement = {"Effect": "Allow", "Action": list(actions), "Resource": "*"}
        policy = {"Version": "2012-10-17", "Statement": [statement]}
        users.put_user_policy(name, "jobs", json.dumps(policy))
    key = users.create_access_key(name)
    return key.access_key_id, key.secret_access_key


def end_with_stdin() -> None:
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    assert settings.INITIAL_NO_AUTH_ACTION_COUNT == 0
    s3_backends[DEFAULT_ACCOUNT_ID]["aws"].create_bucket(BUCKET, "us-east-1")
    users = {"permitted": user_keys("worker", PERMITTED), "unpermitted": user_keys("stranger", ())}
    application = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=QuietHandler)
    threading.Thread(target=end_with_stdin, daemon=True).start()
    print(json.dumps({"address": f"127.0.0.1:{server.server_port}", "bucket": BUCKET, **users}), flush=True)  # noqa: T201
    server.serve_forever()


if __name__ == "__main__":
    main()
