"""A tiny balancer for a service of GOGH, where there is none yet.

    python3 docs/examples/balance.py --port 8080 ENDPOINTS

Reads the service's endpoints file (docs/services.md) whenever it was replaced, and gives each
request to the replica that has the fewest under way for its weight. One that does not listen any
more is passed over, and a request that a kept connection lost before a byte was answered is sent
once more, as HTTP allows; answers are passed on as they come, token by token. It is good for some
hundred requests a second: beyond that, nginx or HAProxy.
"""
import argparse
import asyncio
import collections
import contextlib
import json
import os
import sys

BODY_MAX = 64 << 20
NOT_PASSED_ON = ("connection:", "keep-alive:", "proxy-connection:")
BROKEN = (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError)


class Lost(Exception):
    """The replica closed the connection before it said anything."""


async def read_head(reader):
    """(first line, header lines, their values by lower-case name)"""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
    values = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
    return first, lines, values


def write_head(writer, first, lines, *more):
    kept = [line for line in lines if not line.lower().startswith(NOT_PASSED_ON)]
    writer.write("\r\n".join([first, *kept, *more, "", ""]).encode("latin-1"))


async def pass_on(reader, writer, n):
    """n bytes; -1: all until the end."""
    while n:
        block = await reader.read(65536 if n < 0 else min(n, 65536))
        if not block:
            if n > 0:
                raise ConnectionError("the replica broke off")
            return
        writer.write(block)
        await writer.drain()
        n -= len(block) if n > 0 else 0


async def pass_on_chunks(reader, writer):
    n = -1
    while n:
        line = await reader.readuntil(b"\r\n")
        writer.write(line)
        n = int(line.split(b";")[0], 16)
        await pass_on(reader, writer, n + 2 if n else 0)
    line = b""
    while line != b"\r\n":  # trailers, and the empty line
        line = await reader.readuntil(b"\r\n")
        writer.write(line)
    await writer.drain()


class Balancer:
    def __init__(self, path):
        self.path = path
        self.seen = None
        self.weights = {}  # (host, port): weight
        self.under_way = collections.Counter()
        self.idle = collections.defaultdict(list)

    def look(self):
        """Read the file if it is another one."""
        with contextlib.suppress(FileNotFoundError):
            st = os.stat(self.path)
            seen = (st.st_ino, st.st_mtime_ns, st.st_size)
            if seen == self.seen:
                return
            with open(self.path, encoding="utf-8") as f:
                told = json.load(f)["endpoints"]
            self.seen = seen
            self.weights = {(e["host"], e["port"]): e["weight"] for e in told if e["weight"] > 0}
            for key in [k for k in self.idle if k not in self.weights]:
                for _, writer in self.idle.pop(key):
                    writer.close()

    def pick(self, tried):
        self.look()
        keys = [k for k in self.weights if k not in tried]
        return min(keys, key=lambda k: (self.under_way[k] + 1) / self.weights[k], default=None)

    async def connect(self, key):
        """((reader, writer), was it used before)"""
        while self.idle[key]:
            reader, writer = self.idle[key].pop()
            if not reader.at_eof() and not writer.is_closing():
                return (reader, writer), True
            writer.close()
        return await asyncio.open_connection(*key), False

    async def ask(self, key, head, body):
        """Send it; (its connection, the head of the answer)."""
        connection, is_used = await self.connect(key)
        reader, writer = connection
        try:
            write_head(writer, head[0], head[1])
            writer.write(body)
            return connection, await read_head(reader)
        except BROKEN as e:
            writer.close()
            if is_used and not getattr(e, "partial", b""):
                raise Lost from None
            raise

    async def forward(self, key, head, body, client):
        """One request to one replica; may the client send another one?"""
        self.under_way[key] += 1
        try:
            (reader, writer), answer = await self.ask(key, head, body)
            try:
                first, lines, values = answer
                is_close = values.get("connection", "").lower() == "close"
                length = values.get("content-length")
                is_bare = head[0].startswith("HEAD ") or first.split(" ")[1] in ("204", "304")
                is_chunked = "chunked" in values.get("transfer-encoding", "").lower()
                is_endless = not (is_bare or is_chunked or length)
                write_head(client, first, lines, *(["Connection: close"] if is_endless else []))
                if is_chunked and not is_bare:
                    await pass_on_chunks(reader, client)
                elif not is_bare:
                    await pass_on(reader, client, int(length) if length else -1)
            except BROKEN:
                client.transport.abort()  # it has begun: nothing else says that it is not whole
                is_close = is_endless = True
            if is_close or is_endless or key not in self.weights:
                writer.close()
            else:
                self.idle[key].append((reader, writer))
            return not is_endless
        finally:
            self.under_way[key] -= 1

    async def serve_one(self, head, body, client):
        tried, is_lost = set(), False
        while (key := self.pick(tried)) is not None:
            try:
                return await self.forward(key, head, body, client)
            except ConnectionRefusedError:
                tried.add(key)
            except Lost:
                if is_lost:
                    break
                is_lost = True
            except BROKEN:
                break
        status = "502 Bad Gateway" if key else "503 Service Unavailable"
        write_head(client, "HTTP/1.1 " + status, [], "Content-Length: 0")
        return True

    async def serve(self, reader, client):
        with contextlib.suppress(*BROKEN, asyncio.CancelledError):  # the latter at our own end
            may_go_on = True
            while may_go_on:
                head = await read_head(reader)
                n = int(head[2].get("content-length", 0))
                if n > BODY_MAX or "transfer-encoding" in head[2]:
                    write_head(client, "HTTP/1.1 411 Length Required", [], "Connection: close")
                    break
                body = await reader.readexactly(n)
                may_go_on = await self.serve_one(head, body, client)
                may_go_on &= head[2].get("connection", "").lower() != "close"
                await client.drain()
        client.close()


async def main():
    p = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    p.add_argument("endpoints", help="the file of the service")
    p.add_argument("--host", default="127.0.0.1")
    p.add_argument("--port", type=int, default=8080, help="0: any that is free")
    options = p.parse_args()
    listener = await asyncio.start_server(Balancer(options.endpoints).serve, options.host,
                                          options.port, backlog=1024)
    print("listening on %d" % listener.sockets[0].getsockname()[1], flush=True)
    await listener.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        try:
            asyncio.run(main())
        except OSError as e:
            sys.exit("balance.py: cannot listen: %s" % e)
