"""Baseline: an aiohttp handler over TLS that allows every review; `FOLDER` has the certificate."""

import asyncio
import ssl
import sys
from pathlib import Path

import orjson
import uvloop
from aiohttp import web


async def allow(request: web.Request) -> web.Response:
    review = orjson.loads(await request.read())
    response = {"uid": review["request"]["uid"], "allowed": True}
    answer = {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
    return web.Response(body=orjson.dumps(answer), content_type="application/json")


async def serve(folder: Path) -> None:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    app = web.Application()
    app.router.add_post("/mutate/workload", allow)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    print(orjson.dumps({"port": runner.addresses[0][1]}).decode(), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(Path(sys.argv[1])))
