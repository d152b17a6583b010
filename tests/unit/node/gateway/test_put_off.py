"""The response to a request without room names what uses the room."""

import pytest

from strandline.node.gateway.figures import Outcome
from strandline.node.gateway.in_flight import Usage
from strandline.node.gateway.rejections import put_off

pytestmark = pytest.mark.unit

LIMIT = 1_000


@pytest.mark.parametrize(
    ("usage", "unacknowledged_s", "cause", "remedy"),
    [
        (
            Usage(LIMIT, 16, 990, 0),
            0.0,
            "16 requests that are still arriving hold 990 bytes",
            "let senders send faster",
        ),
        (
            Usage(LIMIT, 16, 600, 400),
            9.0,
            "Kafka is not the cause: 400 bytes wait for Kafka",
            "let senders send faster",
        ),
        (Usage(LIMIT, 0, 0, 990), 5.0, "Kafka does not acknowledge: 990 bytes wait", "look at Kafka's brokers"),
        (Usage(LIMIT, 3, 100, 900), 30.0, "the oldest for 30.0 s", "look at Kafka's brokers"),
        (Usage(LIMIT, 3, 100, 900), 0.2, "send more at a time than the limit allows", "start another gateway"),
    ],
)
def test_the_answer_names_the_cause(usage: Usage, unacknowledged_s: float, cause: str, remedy: str) -> None:
    answer = put_off(5.0, usage, unacknowledged_s)
    assert (answer.status, answer.outcome) == (503, Outcome.PUT_OFF)
    assert answer.message.startswith(
        "gateway.max_in_flight (1000 bytes) is reached, and no room became free within 5 s: "
    )
    assert cause in answer.message
    assert remedy in answer.remedy
    assert len(str(answer)) < 500, "Prometheus truncates longer texts"
