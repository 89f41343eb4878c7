#!/usr/bin/env python3
"""Over TCP: every route of /openapi.json is refused without a token, and with too low a scope.

Which scope a route needs is read from the table in docs/api.md, so that neither can change alone.
"""
import hashlib
import http.client
import os
import pwd
import re
import shutil
import ssl
import subprocess
import sys

from daemon import Box, CEILING_S, ask_by, check, free_port, run, until

SCOPES = ("none", "read", "submit", "operate", "admin")


# ---- what the docs say ----

def routes_of_row(cell):
    """'`POST /v1/jobs/{id}/cancel`, `/hold`': the method goes on, and the path's last part."""
    found = []
    for text in re.findall(r"`([^`]+)`", cell):
        method, _, path = text.rpartition(" ")
        before = found[-1] if found else (None, "")
        method = method or before[0]
        if "{" in before[1] and not path.startswith("/v1"):
            path = before[1].rsplit("/", 1)[0] + path
        found.append((method, path))
    return found


def documented_scopes():
    with open(os.path.join(os.environ["SRC"], "docs/api.md")) as f:
        text = f.read()
    rows = re.search(r"\| route \| scope \|.*?\n\n", text, re.S).group(0).split("\n")[2:-2]
    scopes = {}
    for row in rows:
        cells = [c.strip() for c in row.strip().strip("|").split("|")]
        routes, words = routes_of_row(cells[0]), cells[1].split(" · ")
        for i, route in enumerate(routes):
            scopes[route] = words[i if len(words) > 1 else 0]
    return scopes


# ---- a box with tokens ----

def make_tokens(box):
    """A token of each scope; the file has their digests."""
    owner = pwd.getpwuid(os.geteuid()).pw_name
    tokens = {}
    path = box.path("tokens")
    with open(path, "w") as f:
        os.chmod(path, 0o600)
        for scope in SCOPES[1:]:
            tokens[scope] = "token-of-%s-%s" % (scope, os.urandom(16).hex())
            digest = hashlib.sha256(tokens[scope].encode()).hexdigest()
            f.write("%s %s %s %s\n" % (scope, scope, owner, digest))
    return path, tokens


def make_certificate(box):
    """Files with a certificate for 127.0.0.1 and its key; None: nothing here makes one."""
    cert, key = box.path("tls.crt"), box.path("tls.key")
    if not shutil.which("openssl"):
        return None
    done = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=gogh test",
         "-addext", "subjectAltName=IP:127.0.0.1"], capture_output=True)
    check(done.returncode == 0, "openssl:", done.stderr.decode())
    return cert, key


class Way:
    """How to ask over TCP."""

    def __init__(self, port, cert=None):
        self.port = port
        self.context = ssl.create_default_context(cafile=cert) if cert else None

    def connect(self):
        if self.context:
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=CEILING_S,
                                               context=self.context)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=CEILING_S)

    def ask(self, method, path, token=None, body=None, scheme="Bearer"):
        headers = {"Authorization": "%s %s" % (scheme, token)} if token else {}
        return ask_by(self.connect(), method, path, body, headers)


def start_on_tcp(box, tail, lines):
    """Some other program may take the port in between: then another one."""
    for _ in range(5):
        port = free_port()
        box.spawn(lines + ["listen 127.0.0.1:%d%s" % (port, tail)])
        if until("it is up, or not", lambda: box.process.poll() is not None or box.try_ask(
                "GET", "/readyz")) and box.process.poll() is None:
            return port
    check(False, "no port could be had")


# ---- what must be so ----

def filled(path):
    return path.replace("{id}", "0").replace("{name}", "box")


# Bodies that are right, so that nothing but the scope stands in the way.
BODIES = {
    ("POST", "/v1/jobs"): {"argv": ["/bin/true"], "hold": True, "steps": 1},
    ("POST", "/v1/workloads"): {"name": "some-net", "batch": 4},
    ("POST", "/v1/measurements"): {"measurements": [
        {"workload": "some-net (batch size 4)", "gpu": "k80", "throughput": 3.5}]},
}


def refused(answer, status, *what):
    check(answer.status == status and answer.body and "error" in answer.body, *what, "gave",
          answer.status, "and not", status, answer.text[:200])


def check_route(way, tokens, method, path, need):
    body = BODIES.get((method, path))
    if need == "none":
        answer = way.ask(method, filled(path))
        check(answer.status == 200, method, path, "needs no token and gave", answer.status)
        return
    refused(way.ask(method, filled(path), body=body), 401, method, path, "without a token")
    refused(way.ask(method, filled(path), "no-such-token", body), 401, method, path, "made up")
    refused(way.ask(method, filled(path), tokens["admin"], body, "Basic"), 401, method, path,
            "by another scheme")
    for scope in SCOPES[1:]:
        token = tokens[scope]
        if SCOPES.index(scope) < SCOPES.index(need):
            refused(way.ask(method, filled(path), token, body), 403, method, path, "with", scope)
        else:
            status = way.ask(method, filled(path), token, body).status
            check(status not in (401, 403), method, path, "with", scope, "gave", status)


def check_all(way, tokens):
    scopes = documented_scopes()
    paths = way.ask("GET", "/openapi.json").body["paths"]
    routes = [(m.upper(), p) for p, ways in paths.items() for m in ways if m in
              ("get", "post", "put", "delete", "patch")]
    check(set(routes) == set(scopes), "docs/api.md and /openapi.json differ in",
          sorted(set(routes) ^ set(scopes)))
    way.ask("POST", "/v1/workloads", tokens["admin"], BODIES["POST", "/v1/workloads"])
    for route in sorted(routes):
        check_route(way, tokens, *route, scopes[route])
    refused(way.ask("GET", "/v1/nothing"), 404, "a path that is not there")
    refused(way.ask("DELETE", "/v1/jobs", tokens["admin"]), 405, "a method that is not there")
    print("%d routes, each without a token and with every scope" % len(routes))


def check_reload(box, way, tokens, path):
    """A token that is taken out of the file is one no more, after SIGHUP."""
    with open(path) as f:
        lines = [line for line in f if not line.startswith("operate ")]
    with open(path, "w") as f:
        f.writelines(lines)
    check(way.ask("GET", "/v1/jobs", tokens["operate"]).status == 200, "it is forgotten too soon")
    box.process.send_signal(1)
    until("it is forgotten", lambda: way.ask("GET", "/v1/jobs", tokens["operate"]).status == 401)
    check(way.ask("GET", "/v1/jobs", tokens["read"]).status == 200, "so is another")


def with_tls():
    with Box("k80:1") as box:
        files = make_certificate(box)
        if files is None:
            print("skipped: TLS; openssl is not here to make a certificate")
            return
        path, tokens = make_tokens(box)
        port = start_on_tcp(box, " cert=%s key=%s" % files, ["tokens " + path])
        way = Way(port, files[0])
        check_all(way, tokens)
        check_reload(box, way, tokens, path)
        plain = None
        try:
            plain = Way(port).ask("GET", "/healthz").status
        except (OSError, http.client.HTTPException):
            pass
        check(plain is None or plain >= 400, "the TLS port answers plain HTTP with", plain)
        check(not [t for t in tokens.values() if t in box.log()], "a token is in the log")
        box.finish()


def without_tls():
    """Only on the loopback; tokens all the same."""
    with Box("k80:1") as box:
        path, tokens = make_tokens(box)
        port = start_on_tcp(box, "", ["tokens " + path])
        check_all(Way(port), tokens)
        box.finish()
    with Box("k80:1") as box:
        for address in ("0.0.0.0", "192.0.2.1", "[::]"):
            said = box.refused(["listen %s:7117" % address])
            check("TLS" in said and "loopback" in said, address, "says", said)
        check(not box.processes(), "a daemon is left")


def bad_files():
    """Tokens that anybody may read, and tokens of nobody, keep it from starting."""
    with Box("k80:1") as box:
        path, _ = make_tokens(box)
        os.chmod(path, 0o644)
        said = box.refused(["tokens " + path, "listen 127.0.0.1:%d" % free_port()])
        check("tokens" in said and "chmod" in said, "says", said)
        os.chmod(path, 0o600)
        with open(path, "a") as f:
            f.write("broken line\n")
        said = box.refused(["tokens " + path, "listen 127.0.0.1:%d" % free_port()])
        check("tokens:5" in said, "does not name the line:", said)


def by_socket():
    """The kernel says who asks: a scope of none is nobody's business, but for oneself."""
    with Box("k80:1") as box:
        box.lines.append("socket %s scope=none" % box.socket)
        box.start()
        check(box.ask("GET", "/v1/jobs").status == 200, "its own user is no admin")
        if os.geteuid() == 0 and os.access(os.environ["GOGH"], os.X_OK):
            os.chmod(box.dir, 0o755)
            code = ("import socket; s = socket.socket(socket.AF_UNIX); s.connect(%r); "
                    "s.sendall(b'GET /v1/jobs HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n"
                    "\\r\\n'); print(s.recv(100).split()[1].decode())" % box.socket)
            python = shutil.which("python3", path="/usr/bin:/bin")
            done = subprocess.run([python, "-c", code], capture_output=True, text=True, cwd="/",
                                  user=65534, group=65534, extra_groups=[]) if python else None
            if done:
                check(done.stdout.strip() == "403", "nobody gets", done.stdout, done.stderr)
        else:
            print("skipped: asking as somebody else takes root")
        box.finish()


def main():
    with_tls()
    without_tls()
    bad_files()
    by_socket()


if __name__ == "__main__":
    sys.exit(run(main))
