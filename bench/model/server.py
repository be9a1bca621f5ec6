# SPDX-License-Identifier: Apache-2.0
"""Serves both chat APIs on loopback, with faults on demand; for tests and bench_model.

    python3 server.py            serves until file descriptor 3 closes, at most 300 s
    python3 server.py --port N   serves for 300 s

The port is sent over descriptor 3 (base/process/channel.h: four bytes of length, then text) or
printed.

A request's path selects the reply: /t/ID/ACT,ACT,.../v1/messages (or /chat/completions). The n-th
request with an ID gets the n-th act; after the last act, the last one repeats. The acts are the
methods act_*; a semicolon replaces the comma where a comma has another meaning. The act
random-PERCENT fails that percentage of requests. A POST to /stats returns what was served, to
/last/ID the last request with that ID, to /gaps/ID the seconds from each reply to the next request.

The act script replies by a list of rules from a POST to /script/ID. It uses the first rule whose
`when` occurs in the text since the model's last turn and which has been used fewer than `times`
times: the reply is `say` ({n} is the number of the request), the calls are `tools` ([[name,
arguments], ...]), the stop reason is `why` ("end"). With `until`, a path, it first waits for that
file.
"""
import http.server
import json
import os
import random
import socket
import struct
import sys
import threading
import time
from email.utils import formatdate

from apis import Anthropic, OpenAi

WORDS = ["Use ", "wider ", "loads ", "and ", "fewer ", "barriers."]
TOOLS = [("call_a", "measure", {"kernel": "softmax", "tile": 32}), ("call_b", "diagnose", {})]
MAX_SECONDS = 300
STALL_SECONDS = 1.2
MAX_HELD_SECONDS = 60
FAULTS = ["429ms-20", "529", "500", "503", "cut", "cut0", "cutbody", "stall", "garbage", "html",
          "halfjson", "error200", "error200json", "drop"]


class Stats:
    def __init__(self):
        self.lock = threading.Lock()
        self.turns = {}
        self.last = {}
        self.scripts = {}
        self.gaps = {}
        self.replied = {}
        self.random = random.Random(7)
        self.counts = {"requests": 0, "whole": 0, "whole_input": 0, "whole_output": 0,
                       "part": 0, "part_input": 0, "part_output": 0, "acts": {}}

    def add(self, **values):
        with self.lock:
            for name, value in values.items():
                self.counts[name] += value


STATS = Stats()


def strings(value):
    """All texts within a JSON value."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    return [text for part in value for text in strings(part)] if hasattr(value, "__iter__") else []


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    # -- the ways of answering ------------------------------------------------------------------
    def plain(self, status, body, kind="application/json", **headers):
        data = body if isinstance(body, bytes) else body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def start_stream(self, kind="text/event-stream"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def chunk(self, data):
        data = data if isinstance(data, bytes) else data.encode()
        if data:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def end_stream(self):
        self.wfile.write(b"0\r\n\r\n")

    def hang_up(self):
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    # -- requests -------------------------------------------------------------------------------
    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = self.path.split("/")
        if self.path == "/stats":
            with STATS.lock:
                return self.plain(200, json.dumps(STATS.counts))
        if parts[1] == "script":
            with STATS.lock:
                STATS.scripts[parts[2]] = json.loads(raw)
            return self.plain(200, "{}")
        if parts[1] == "gaps":
            with STATS.lock:
                return self.plain(200, json.dumps(STATS.gaps.get(parts[2], [])))
        if parts[1] == "last":
            with STATS.lock:
                return self.plain(200, json.dumps(STATS.last.get(parts[2])))
        arrived = time.perf_counter()
        name, acts, path = parts[2], parts[3].replace(";", ",").split(","), "/" + "/".join(parts[4:])
        body = json.loads(raw)
        if not body.get("messages"):
            return self.refuse_nothing(path, body, acts[0])
        with STATS.lock:
            if name in STATS.replied:
                STATS.gaps.setdefault(name, []).append(arrived - STATS.replied[name])
            turn = STATS.turns.get(name, 0)
            STATS.turns[name] = turn + 1
            act = acts[min(turn, len(acts) - 1)]
            if act.startswith("random-"):
                faulty = STATS.random.random() * 100 < int(act[7:])
                act = STATS.random.choice(FAULTS if faulty else ["ok", "ok", "tools2", "json"])
            STATS.counts["requests"] += 1
            STATS.counts["acts"][act] = STATS.counts["acts"].get(act, 0) + 1
            STATS.last[name] = {"path": path, "body": body, "turns": turn + 1,
                                "headers": {k.lower(): v for k, v in self.headers.items()}}
        api = (Anthropic if path.endswith("/v1/messages") else OpenAi)(self, body)
        self.name, self.body, self.turn = name, body, turn + 1
        verb, _, detail = act.partition("-")
        try:
            getattr(self, "act_" + verb)(api, detail)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def refuse_nothing(self, path, body, act):
        """A request without messages (ChatClient::knock) counts as none."""
        api = (Anthropic if path.endswith("/v1/messages") else OpenAi)(self, body)
        if act in ("401", "403", "404", "404path"):
            return getattr(self, "act_" + act)(api, "")
        return self.status(api, 400, "invalid_request_error", "messages: at least one is required")

    def served(self, api, whole):
        kind = "whole" if whole else "part"
        STATS.add(**{kind: 1, kind + "_input": api.input, kind + "_output": api.output})

    def stream(self, api, pieces, change=lambda text: text):
        # Count before sending, so that a client with the complete reply finds it counted.
        text = api.begin() + "".join(pieces) + api.done()
        self.served(api, True)
        self.start_stream()
        self.chunk(change(text))
        with STATS.lock:
            STATS.replied[self.name] = time.perf_counter()
        self.end_stream()

    def words(self, api, words=None, why="end"):
        yield from api.text(WORDS if words is None else words)
        yield api.stop(why)

    # -- acts: replies --------------------------------------------------------------------------
    def act_ok(self, api, _):
        self.stream(api, self.words(api))

    def act_script(self, api, _):
        messages = self.body["messages"]
        turns = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
        asked = "\n".join(strings(messages[turns[-1] + 1 if turns else 0:]))
        with STATS.lock:
            for rule in STATS.scripts.get(self.name, []):
                if rule["when"] in asked and rule.setdefault("times", 1 << 30) > 0:
                    rule["times"] -= 1
                    break
            else:
                rule = None
        if rule is None:
            return self.status(api, 400, "invalid_request_error", "no rule of the script fits")
        held = time.monotonic() + MAX_HELD_SECONDS
        while "until" in rule and not os.path.exists(rule["until"]):
            if time.monotonic() > held:
                return self.status(api, 400, "invalid_request_error", "held for too long")
            time.sleep(0.01)
        say = rule.get("say", "").replace("{n}", str(self.turn))
        pieces = list(api.text([say[at:at + 40] for at in range(0, len(say), 40)])) if say else []
        calls = [(f"call_{self.turn}_{i}", name, arguments)
                 for i, (name, arguments) in enumerate(rule.get("tools", []))]
        why = "tools" if calls else rule.get("why", "end")
        self.stream(api, [*pieces, *api.tools(calls), api.stop(why)])

    def act_tools(self, api, _):
        self.stream(api, [*api.text(["Look."]), *api.tools(TOOLS[:1]), api.stop("tools")])

    def act_tools2(self, api, _):
        self.stream(api, [*api.tools(TOOLS), api.stop("tools")])

    def act_toolbad(self, api, _):
        self.stream(api, [*api.tools([("x", "measure", '{"tile": 3')]), api.stop("tools")])

    def act_json(self, api, _):
        body = api.whole(WORDS)
        self.served(api, True)
        self.plain(200, json.dumps(body))

    def act_misnamed(self, api, _):
        text = api.begin() + "".join(self.words(api)) + api.done()
        self.served(api, True)
        self.plain(200, text, "text/plain")

    def act_cache(self, api, _):
        api.cached, api.written = api.input // 2, api.input // 4
        self.stream(api, self.words(api))

    def act_crlf(self, api, _):
        self.stream(api, self.words(api), lambda text: ": hello\r\n" + text.replace("\n", "\r\n"))

    def act_cr(self, api, _):
        self.stream(api, self.words(api), lambda text: text.replace("\n", "\r"))

    def act_bytes(self, api, _):
        text = api.begin() + "".join(self.words(api)) + api.done()
        self.served(api, True)
        self.start_stream()
        for byte in text.encode():
            self.chunk(bytes([byte]))
        self.end_stream()

    def act_badutf8(self, api, _):
        self.stream(api, self.words(api), lambda text: text.encode().replace(b"loads", b"l\xff\xfes"))

    def act_length(self, api, _):
        self.stream(api, self.words(api, why="length"))

    def act_refusal(self, api, _):
        self.stream(api, self.words(api, ["No."], "refusal"))

    def act_empty(self, api, _):
        self.stream(api, self.words(api, []))

    def act_lazy(self, api, _):
        """A complete reply on a connection that then stays open."""
        self.start_stream()
        text = api.begin() + "".join(self.words(api)) + api.done()
        self.served(api, True)
        self.chunk(text)
        time.sleep(STALL_SECONDS)
        self.hang_up()

    def act_nodone(self, api, _):
        """A stream with a stop reason but no end."""
        self.start_stream()
        self.chunk(api.begin() + "".join(self.words(api)))
        self.served(api, False)
        self.hang_up()

    def act_echo(self, api, _):
        key = self.headers.get("x-api-key") or self.headers.get("authorization", "")[7:]
        self.stream(api, self.words(api, ["the key is ", key]))

    def act_slow(self, api, _):
        """Takes seconds; /last/ID has `began` once a word was sent."""
        self.start_stream()
        self.chunk(api.begin())
        for word in api.text(["word "] * 200):
            self.chunk(word)
            with STATS.lock:
                STATS.last[self.name]["began"] = True
            time.sleep(0.02)
        self.served(api, True)
        self.chunk(api.stop("end") + api.done())
        self.end_stream()

    # -- acts: faults ---------------------------------------------------------------------------
    def status(self, api, code, kind, message="try again", **headers):
        self.plain(code, json.dumps(api.error(kind, message)), **headers)

    def act_400(self, api, _):
        self.status(api, 400, "invalid_request_error", "messages: too long")

    def act_401(self, api, _):
        key = self.headers.get("x-api-key") or self.headers.get("authorization", "")
        self.status(api, 401, "authentication_error", f"invalid key: {key}, {key[:20]}...")

    def act_403(self, api, _):
        self.status(api, 403, "permission_error", "not yours")

    def act_404(self, api, _):
        self.status(api, 404, "not_found_error", "model: " + api.model)

    def act_404path(self, api, _):
        self.plain(404, "404 page not found", "text/plain")

    def act_408(self, api, _):
        self.status(api, 408, "timeout_error")

    def act_409(self, api, _):
        self.status(api, 409, "conflict")

    def act_413(self, api, _):
        self.status(api, 413, "request_too_large", "too large")

    def act_429(self, api, seconds):
        self.status(api, 429, "rate_limit_error", **({"Retry_After": seconds} if seconds else {}))

    def act_429ms(self, api, ms):
        self.status(api, 429, "rate_limit_error", Retry_After_Ms=ms, Retry_After="77")

    def act_429date(self, api, seconds):
        until = formatdate(time.time() + int(seconds), usegmt=True)
        self.status(api, 429, "rate_limit_error", Retry_After=until)

    def act_quota(self, api, _):
        self.status(api, 429, "insufficient_quota", "no credit")

    def act_500(self, api, _):
        self.status(api, 500, "api_error")

    def act_502(self, api, _):
        self.plain(502, "<html>bad gateway</html>", "text/html")

    def act_503(self, api, _):
        self.status(api, 503, "overloaded_error")

    def act_504(self, api, _):
        self.plain(504, "", "text/plain")

    def act_529(self, api, _):
        self.status(api, 529, "overloaded_error", "Overloaded")

    def act_redirect(self, api, _):
        self.plain(302, "", Location="http://127.0.0.1:1/")

    def act_cut(self, api, _):
        """Cuts the connection within the reply, after some words."""
        self.start_stream()
        self.chunk(api.begin() + "".join(list(api.text(WORDS))[:4]))
        api.output = 4 if isinstance(api, OpenAi) else 3
        self.served(api, False)
        self.hang_up()

    def act_cut0(self, api, _):
        """Cuts the connection before the first event."""
        self.start_stream()
        self.hang_up()

    def act_cutbody(self, api, _):
        text = json.dumps(api.whole(WORDS))
        self.served(api, False)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text[:len(text) // 2].encode())
        self.hang_up()

    def act_stall(self, api, _):
        self.start_stream()
        self.chunk(api.begin() + "".join(list(api.text(WORDS))[:3]))
        api.output = 3 if isinstance(api, OpenAi) else 2
        self.served(api, False)
        time.sleep(STALL_SECONDS)
        self.hang_up()

    def act_hang(self, api, _):
        time.sleep(STALL_SECONDS)
        self.hang_up()

    def act_drop(self, api, _):
        self.hang_up()

    def act_garbage(self, api, _):
        self.start_stream()
        self.chunk(b"data: \x00\x01 not json {{{\n\n" + bytes(range(256)))
        self.end_stream()

    def act_html(self, api, _):
        self.plain(200, "<!DOCTYPE html><title>Sign in</title>", "text/html")

    def act_halfjson(self, api, _):
        text = json.dumps(api.whole(WORDS))
        self.served(api, False)
        self.plain(200, text[:len(text) // 2])

    def act_deep(self, api, _):
        self.plain(200, '{"content":' + "[" * 200000)

    def act_error200(self, api, _):
        """An error within the stream, before any word."""
        self.start_stream()
        self.chunk(api.error_event("overloaded_error", "Overloaded"))
        self.end_stream()

    def act_error200late(self, api, _):
        self.start_stream()
        self.chunk(api.begin() + "".join(list(api.text(WORDS))[:4]) +
                   api.error_event("overloaded_error", "Overloaded"))
        api.output = 4 if isinstance(api, OpenAi) else 3
        self.served(api, False)
        self.end_stream()

    def act_error200json(self, api, _):
        self.plain(200, json.dumps(api.error("overloaded_error", "Overloaded")))

    def act_huge(self, api, detail):
        """Far too much data: one endless line, or endless events."""
        self.start_stream()
        self.chunk(api.begin())
        piece = "".join(api.text(["word " * 2000] * 100)) if detail == "events" else "x" * (1 << 20)
        for _ in range((80 << 20) // len(piece) + 1):
            self.chunk(piece)
        self.end_stream()


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        pass  # clients that hang up


def main():
    port = int(sys.argv[2]) if sys.argv[1:2] == ["--port"] else 0
    server = Server(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    if port:
        print(f"http://127.0.0.1:{port}", flush=True)
        time.sleep(MAX_SECONDS)
        return
    told = str(server.server_address[1]).encode()
    os.write(3, struct.pack("<I", len(told)) + told)
    threading.Timer(MAX_SECONDS, lambda: os._exit(0)).start()
    while os.read(3, 4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
