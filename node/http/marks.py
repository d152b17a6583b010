"""What the server notes on a request for its own parts."""

from aiohttp import web

# There once the status line of the answer is on its way.
ANSWER_BEGUN: web.RequestKey[bool] = web.RequestKey("answer_begun", bool)
