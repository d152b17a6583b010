"""A gateway that runs for one test, and its outcomes."""

from collections.abc import Awaitable, Callable

from strandline.node.gateway.figures import Outcome
from strandline.node.gateway.options import GatewayOptions
from support.gateways import InProcessGateway, serving
from support.http_servers import in_loop

QUICK = GatewayOptions(timeout_s=0.2)


def run(test: Callable[[InProcessGateway], Awaitable[None]], options: GatewayOptions | None = None) -> InProcessGateway:
    async def serve_and_test() -> InProcessGateway:
        async with serving(options) as gateway:
            await test(gateway)
        assert gateway.gateway.figures().in_flight_bytes == 0
        return gateway

    return in_loop(serve_and_test())


def outcomes(gateway: InProcessGateway) -> dict[Outcome, int]:
    return {outcome: count for outcome, count in gateway.gateway.figures().requests.items() if count}
