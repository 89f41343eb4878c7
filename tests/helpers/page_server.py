#!/usr/bin/env python3
"""A server with a Prometheus page like vLLM's, which says of itself what it is told to.

    page_server.py [good|falls|gone|huge|hangs]    listens at GOGH_PORT; the word is its page's

    GET /answer?took=0.3&n=10   ten requests that took so long, as far as its page goes
    GET /metrics                the page
    GET /page?is=gone           what the page is from now on; without a word, how often it was asked for
    GET /healthz                200
"""
import os
import sys
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BUCKETS = (0.5, 2.0, float("inf"))
NAME = "vllm:e2e_request_latency_seconds"


class Figures:
    def __init__(self, kind):
        self.kind, self.n_asked, self.took = kind, 0, []

    def page(self):
        took = list(self.took)
        if self.kind == "falls" and self.took:
            self.took.pop()
        lines = ["# TYPE %s histogram" % NAME, "vllm:num_requests_running 0",
                 'vllm:request_success_total{finished_reason="stop"} %d' % len(took)]
        for le in BUCKETS:
            lines.append('%s_bucket{le="%s"} %d' % (NAME, "+Inf" if le == float("inf") else le,
                                                    sum(t <= le for t in took)))
        lines += ["%s_count %d" % (NAME, len(took)), "%s_sum %g" % (NAME, sum(took))]
        return "\n".join(lines) + "\n"


class Handler(BaseHTTPRequestHandler):
    def reply(self, text, status=200):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def do_metrics(self, words):
        figures.n_asked += 1
        if figures.kind == "hangs":
            threading.Event().wait()
        if figures.kind == "gone":
            self.reply("nothing here\n", 404)
        else:
            self.reply(figures.page() + "x 1\n" * (5 << 20 if figures.kind == "huge" else 0))

    def do_answer(self, words):
        figures.took += int(words.get("n", 1)) * [float(words["took"])]
        self.reply("done\n")

    def do_page(self, words):
        figures.kind = words.get("is", figures.kind)
        self.reply(str(figures.n_asked))

    def do_healthz(self, words):
        self.reply("good\n")

    def do_GET(self):
        at = urllib.parse.urlsplit(self.path)
        do = getattr(self, "do_" + at.path[1:])
        do(dict(urllib.parse.parse_qsl(at.query)))

    def log_message(self, *words):
        pass


figures = Figures(sys.argv[1] if len(sys.argv) > 1 else "good")
ThreadingHTTPServer(("127.0.0.1", int(os.environ["GOGH_PORT"])), Handler).serve_forever()
