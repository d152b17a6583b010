"""What the event loop asks of a shard without a thread, and the editions that it reads."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from strandline.index.part_columns import Span
from strandline.node.query import link_client
from strandline.node.query.answers import TermsAnswer
from strandline.node.query.link_client import LinkClient
from strandline.node.query.link_server import LinkServer
from strandline.node.query.link_socket import SHORT, LinkBroken
from strandline.node.query.queries import (
    QueryTimedOut,
    QueryUnavailable,
)
from support.http_servers import in_loop
from support.links import ASK, CLOCK, WAIT_S, Service, give

pytestmark = pytest.mark.unit


class TestAskedAtOnce:
    """What an event loop asks without a thread."""

    @pytest.mark.usefixtures("server")
    def test_only_over_a_connection_that_is_there(self, client: LinkClient) -> None:
        assert client.begin_at_once(ASK, give()) is None
        client.ask(ASK, give())
        first = client.begin_at_once(ASK, give())
        assert first is not None
        assert client.begin_at_once(ASK, give()) is None
        assert in_loop(first.arrives()) is not None
        assert first.answer().warnings == (repr(ASK),)
        again = client.begin_at_once(ASK, give())
        assert again is not None
        again.abandon()

    @pytest.mark.usefixtures("server")
    def test_a_long_answer_is_left_to_a_thread(self, service: Service, client: LinkClient) -> None:
        client.ask(ASK, give())
        data = np.zeros(SHORT + 1, dtype=np.uint8)
        service.answers = lambda *_: TermsAnswer(np.array([0, len(data)]), data, np.array([7]), more=False)
        asked = client.begin_at_once(ASK, give())
        assert asked is not None
        assert in_loop(asked.arrives()) is None
        answer = asked.answer()
        assert isinstance(answer, TermsAnswer)
        assert len(answer.data) == len(data)

    @pytest.mark.usefixtures("server")
    def test_it_waits_no_longer_than_the_question_may_take(self, service: Service, client: LinkClient) -> None:
        client.ask(ASK, give())
        service.answers = service.work_until_given_up
        asked = client.begin_at_once(ASK, give(0.05))
        assert asked is not None
        assert in_loop(asked.arrives()) is None
        with pytest.raises(QueryTimedOut):
            asked.answer()
        assert service.over.wait(WAIT_S)

    @pytest.mark.usefixtures("server")
    def test_a_connection_that_breaks_as_the_question_is_sent_is_a_thread_s_to_replace(
        self, client: LinkClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def broken(*_: object) -> None:
            raise LinkBroken("the link is broken")

        client.ask(ASK, give())
        with monkeypatch.context() as patched:
            patched.setattr(link_client, "send", broken)
            patched.setattr(client, "connect", broken)
            assert client.begin_at_once(ASK, give()) is None
        assert not client.has_idle()
        assert client.ask(ASK, give()).warnings == (repr(ASK),)

    def test_a_process_that_went_away_is_a_thread_s_to_find(self, service: Service, path: Path) -> None:
        with closing(LinkClient(path, 3, CLOCK)) as client:
            with LinkServer(path, service, CLOCK):
                client.ask(ASK, give())
                service.answers = service.work_until_given_up
                asked = client.begin_at_once(ASK, give())
                assert asked is not None
                assert service.begun.wait(WAIT_S)
            assert in_loop(asked.arrives()) is None
            with pytest.raises(QueryUnavailable):
                asked.answer()


class TestEditions:
    @pytest.mark.usefixtures("server")
    def test_what_the_shard_tells_is_seen_at_once(self, service: Service, client: LinkClient) -> None:
        assert client.edition() is None
        client.ask(ASK, give())
        assert client.edition() is None, "nothing was told yet"
        service.page.tell("one", Span(3, 10, 20))
        first = client.edition()
        assert first is not None
        assert (first.last_start, first.first_end) == (10, 20)
        service.page.tell("two", Span(3, 10, 20))
        second = client.edition()
        assert second is not None
        assert second.numbers != first.numbers
        service.page.tell(None, Span(3, 10, 20))
        assert client.edition() is None

    def test_nothing_holds_any_more_once_the_process_has_ended(self, service: Service, path: Path) -> None:
        with closing(LinkClient(path, 3, CLOCK)) as client:
            with LinkServer(path, service, CLOCK):
                client.ask(ASK, give())
                service.page.tell("one", Span(3, 10, 20))
                before = client.edition()
                assert before is not None
            assert client.edition() is None
            another = Service()
            with LinkServer(path, another, CLOCK):
                client.ask(ASK, give())
                another.page.tell("one", Span(3, 10, 20))
                after = client.edition()
                assert after is not None
                assert after.numbers != before.numbers, "another process's lists are others, whatever it calls them"
            another.page.close()

    def test_the_page_of_a_new_process_is_fetched_though_nobody_missed_the_old_one(
        self, service: Service, path: Path
    ) -> None:
        with closing(LinkClient(path, 3, CLOCK)) as client:
            with LinkServer(path, service, CLOCK):
                client.ask(ASK, give())
            another = Service()
            with LinkServer(path, another, CLOCK):
                client.ask(ASK, give())
                another.page.tell("one", Span(3, 10, 20))
                assert client.edition() is not None
            another.page.close()
