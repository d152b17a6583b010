import pytest

from strandline.clock import ManualClock
from strandline.jobs.running import GRANT_S
from strandline.jobs.worker_names import GoneWorkers, spark_worker_name

pytestmark = pytest.mark.unit


def test_a_dead_process_is_gone_at_once_and_a_dead_driver_after_its_grants_have_expired() -> None:
    clock, dead = ManualClock(), set[str]()
    gone = GoneWorkers(lambda worker: worker in dead, clock)
    driver = spark_worker_name("a")
    assert not gone.is_gone("a")
    assert not gone.is_gone(driver)
    clock.sleep(100)
    dead.add("a")
    assert gone.is_gone("a")
    # Its executors may use Kafka until their last grants expire, which it may have given just before its death.
    assert not gone.is_gone(driver)
    clock.sleep(GRANT_S)
    assert not gone.is_gone(driver)
    clock.sleep(2)
    assert gone.is_gone(driver)
