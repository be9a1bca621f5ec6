# SPDX-License-Identifier: Apache-2.0
"""What the personas share: folders of their own, the program, checks, and a model that they own."""

import contextlib
import http.server
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HANG_S = 900  # catches hangs alone; a command takes seconds on an idle machine
KEPT = ("PATH", "CUDA_HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "KERNELPRO_PYTHON")


class Failed(Exception):
    """Something that the persona would have complained about."""


class Done:
    """A command that has ended."""

    def __init__(self, command, status, out, err):
        self.command, self.status, self.out, self.err = command, status, out, err
        self.text = out + err

    def says(self, *phrases):
        """Each phrase, a regular expression, is in what it printed; line breaks count as blanks."""
        flat = " ".join(self.text.split())
        for phrase in phrases:
            check(re.search(phrase, flat, re.IGNORECASE), f"it should say: {phrase}", self)
        return self

    def refused(self, *phrases):
        """It names what is wrong and what to do next."""
        return self.says(*phrases, "next: ")

    def json(self):
        return json.loads(self.out)

    def __str__(self):
        return f"$ {' '.join(self.command)}\n{self.text.rstrip()}\n(status {self.status})"


def check(holds, what, seen=None):
    if not holds:
        raise Failed(what if seen is None else f"{what}\n{seen}")


def until(holds, what):
    """Waits for what nothing announces."""
    begin = time.monotonic()
    while not holds():
        check(time.monotonic() - begin < HANG_S, what)
        time.sleep(0.1)


class Running:
    """A command that goes on; a thread reads its lines as they come."""

    def __init__(self, command, **more):
        self.command = command
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True, **more)
        self.lines = []
        self._queue = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self._queue.put(line)
        self._queue.put(None)

    def line_with(self, phrase):
        """Waits for a line that has the phrase, a regular expression."""
        while True:
            try:
                line = self._queue.get(timeout=HANG_S)
            except queue.Empty:
                raise Failed(f"no line with {phrase}\n{self}") from None
            check(line is not None, f"it ended without a line with {phrase}", self)
            self.lines.append(line)
            if re.search(phrase, line):
                return line.rstrip("\n")

    def end(self, number=None):
        """Sends the signal, if one is given, and waits for the end."""
        if number is not None:
            self.process.send_signal(number)
        status = self.process.wait(HANG_S)
        self._reader.join(HANG_S)
        while not self._queue.empty():
            line = self._queue.get()
            if line is not None:
                self.lines.append(line)
        return Done(self.command, status, "".join(self.lines), "")

    def __str__(self):
        return f"$ {' '.join(self.command)}\n{''.join(self.lines)}"


class Persona:
    """A user with a home, a cache and a working folder of their own, gone at the end."""

    def __init__(self, kernelpro):
        self.kernelpro = str(Path(kernelpro).resolve())
        self.folder = Path(tempfile.mkdtemp(prefix="kernelpro-persona-"))
        (self.folder / "home").mkdir()
        self.work = self.folder / "work"
        self.work.mkdir()
        self.environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        self.environment.update(HOME=str(self.folder / "home"),
                                KERNELPRO_CACHE=str(self.folder / "cache"),
                                TMPDIR=str(self.folder))
        self._running = []

    def run(self, *words, status=0, program=None, stdin=None, **variables):
        """Runs `kernelpro WORDS` in the working folder; it must end with the status."""
        command = [program or self.kernelpro, *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, input=stdin,
                              cwd=self.work, env={**self.environment, **variables})
        done = Done(command, done.returncode, done.stdout, done.stderr)
        wanted = status if isinstance(status, tuple) else (status,)
        check(done.status in wanted, f"it should end with {status}", done)
        return done

    def start(self, *words, program=None, **variables):
        running = Running([program or self.kernelpro, *map(str, words)], cwd=self.work,
                          env={**self.environment, **variables})
        self._running.append(running)
        return running

    def example(self, source, name="softmax"):
        """A copy of an example of the source tree, of sizes that take no time."""
        task = self.work / name
        shutil.copytree(Path(source) / "examples" / name, task)
        text = (task / "task.toml").read_text()
        small = re.sub(r'(name = "cpu"\ndims = ).*', r"\1{ ROWS = 64, COLS = 1024 }", text)
        check(small != text, f"examples/{name} has no case `cpu` to make smaller")
        (task / "task.toml").write_text(small)
        return task

    def leave(self):
        for running in self._running:
            if running.process.poll() is None:
                running.process.kill()
                running.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def tell(path_of, arguments):
    """Runs `path_of(persona, ...)` with the words of the command line; ends the script."""
    if len(sys.argv) != 1 + len(arguments.split()):
        sys.exit(f"usage: {Path(sys.argv[0]).name} {arguments}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    begin = time.monotonic()
    persona = Persona(sys.argv[1])
    try:
        path_of(persona, *sys.argv[2:])
    except Failed as failed:
        sys.exit(f"{Path(sys.argv[0]).stem}: {failed}")
    finally:
        persona.leave()
    print(f"{Path(sys.argv[0]).stem}: all went well, {time.monotonic() - begin:.0f} s")


class Model(http.server.ThreadingHTTPServer):
    """An OpenAI-compatible server with one model. Its planner has two ideas; its coder answers with
    the sources of `write(prompt)`, made different by a comment. Every answer costs 1000 tokens of
    input and 100 of output. `asked` has the requests that it answered."""

    daemon_threads = True
    NAME = "scripted"
    KEY = "key-of-the-upstream"
    INPUT, OUTPUT = 1000, 100

    def __init__(self, write):
        super().__init__(("127.0.0.1", 0), ModelHandler)
        self.write, self.asked, self.lock = write, [], threading.Lock()
        self.address = f"http://127.0.0.1:{self.server_address[1]}/v1"

    def answer(self, request):
        prompt = "\n\n".join(text_of(message) for message in request["messages"])
        with self.lock:
            self.asked.append(request)
            number = len(self.asked)
        if "IDEA:" in prompt and "GAIN:" in prompt:
            return "\n".join(f"IDEA: change {number}.{n} of the loop\nANSWERS: nothing\nGAIN: 1.5\n"
                             for n in (1, 2))
        return f"```cpp\n// idea: change {number}\n{self.write(prompt)}\n```\n"


def text_of(message):
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(c.get("text", "") for c in content)


class ModelHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, status, kind, body):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def fail(self, status, code, message):
        error = {"message": message, "type": "invalid_request_error", "code": code}
        self.send(status, "application/json", json.dumps({"error": error}).encode())

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        model = self.server
        if request.get("model") != model.NAME:
            return self.fail(404, "model_not_found", f"no model `{request.get('model')}`")
        if not request.get("messages"):
            return self.fail(400, None, "messages: at least one is required")
        text = model.answer(request)
        head = {"id": "1", "created": 1, "model": model.NAME}
        usage = {"prompt_tokens": model.INPUT, "completion_tokens": model.OUTPUT,
                 "total_tokens": model.INPUT + model.OUTPUT}
        if not request.get("stream"):
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
            return self.send(200, "application/json", json.dumps(whole).encode())
        parts = [{"choices": [{"index": 0, "delta": delta, "finish_reason": why}]}
                 for delta, why in (({"role": "assistant", "content": text}, None), ({}, "stop"))]
        parts.append({"choices": [], "usage": usage})
        events = [json.dumps({**head, "object": "chat.completion.chunk", **p}) for p in parts]
        body = "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"])
        return self.send(200, "text/event-stream", body.encode())


@contextlib.contextmanager
def model(write):
    with Model(write) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
