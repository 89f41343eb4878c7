#!/usr/bin/env python3
"""A daemon that says what it was told: answers.py SOCKET ANSWERS REQUESTS

ANSWERS is a JSON object: "GET /v1/plan" (with or without a query) to [STATUS, BODY]. A status of 0
breaks the connection the first time and gives 201 afterwards. A list of such pairs is gone through,
the last one stays. Each request goes to the file
REQUESTS as a line of JSON. Ends when its standard input does.
"""
import http.server
import json
import os
import socketserver
import sys
import threading

path, answers, requests = sys.argv[1], json.load(open(sys.argv[2])), sys.argv[3]
broken = set()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def address_string(self):
        return "socket"

    def log_message(self, *_):
        pass

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        with open(requests, "a") as f:
            f.write(json.dumps({"method": self.command, "path": self.path, "body": body,
                                "headers": {k.lower(): v for k, v in self.headers.items()}}) + "\n")
        key = f"{self.command} {self.path}"
        if key not in answers:
            key = key.split("?")[0]
        given = answers.get(
            key, [404, {"error": {"code": "not_found", "message": f"no answer to {key}"}}])
        if isinstance(given[0], list):
            given = given.pop(0) if len(given) > 1 else given[0]
        status, text = given
        if status == 0:
            if key not in broken:
                broken.add(key)
                self.close_connection = True
                self.connection.close()
                return
            status = 201
        data = (text if isinstance(text, str) else json.dumps(text)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = answer


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass


server = Server(path + ".new", Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
os.rename(path + ".new", path)    # whoever sees it can connect
sys.stdin.read()
