#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Someone who watches runs on the live page, as the page's script does, and stops and resumes them.

    watcher.py KERNELPRO SOURCE_DIR
"""

import json
import re
import signal
import urllib.error
import urllib.request

from persona import HANG_S, check, tell, until

TOKEN = "of-the-watcher"


class Page:
    def __init__(self, address, token=TOKEN):
        self.address, self.token = address, token
        # Loopback is never behind a proxy.
        self._open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open

    def ask(self, path, method="GET", **headers):
        """(status, text)"""
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(self.address + path, method=method, headers=headers,
                                         data=b"" if method == "POST" else None)
        try:
            with self._open(request, timeout=HANG_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    def get(self, path):
        status, text = self.ask(path)
        check(status == 200, f"GET {path} should be answered: {status} {text}")
        return json.loads(text)

    def events(self, path):
        """The server-sent events of the address, as (name, data), as they come."""
        request = urllib.request.Request(self.address + path,
                                         headers={"Authorization": f"Bearer {self.token}"})
        with self._open(request, timeout=HANG_S) as stream:
            kind = stream.headers["content-type"]
            check(kind.startswith("text/event-stream"), f"{path} should be a stream, not {kind}")
            name = ""
            for line in stream:
                word, _, value = line.decode().rstrip("\n").partition(": ")
                if word == "event":
                    name = value
                elif word == "data":
                    yield name, json.loads(value)

    def follow(self, run, until, after=0, rows=None):
        """Follows a run until `until(head, rows)`; returns both."""
        rows = [] if rows is None else rows
        for name, data in self.events(f"/events?run={run}&after={after}"):
            if name != "run":
                continue
            rows += data["rows"]
            if until(data["head"], rows):
                return data["head"], rows
        check(False, "the stream of the run ended")

    def does(self, run, what, refused=False):
        """Stops or resumes a run; or is told why not, and what to do next."""
        status, text = self.ask(f"/run/{run}/{what}", "POST")
        check(status == (409 if refused else 200), f"{what}: {status} {text}")
        check(json.loads(text)["next"] if refused else json.loads(text)["done"], text)

    def runs(self, until):
        """The list, once `until(runs)`; looks again at each event, as the page does."""
        for name, _ in self.events("/events"):
            runs = self.get("/runs")["runs"] if name == "runs" else []
            if until(runs):
                return runs
        check(False, "the stream of the list ended")


def is_refused_without_the_token(page):
    status, text = Page(page.address, token="").ask("/")
    check(status == 200 and "<html" in text, "the page itself holds no secret")
    for path in ("/runs", "/events", "/run/1", "/suite/1", "/mcp"):
        for token in ("", "of-another"):
            status, text = Page(page.address, token).ask(path)
            check(status == 401, f"{path} should be refused with the token {token!r}: {status}")
    check("token" in text, f"it should say what is missing: {text}")
    status, _ = page.ask("/runs", Host="elsewhere.example")
    check(status in (403, 421), f"another host's name should be refused: {status}")
    status, _ = page.ask("/runs", Origin="https://elsewhere.example")
    check(status == 403, f"another site should be refused: {status}")
    status, _ = Page(page.address, "").ask("/run/1/stop", "POST")
    check(status == 401, f"nobody without the token should stop a run: {status}")
    status, text = page.ask("/run/1/stop", "POST")
    check(status == 404 and json.loads(text)["next"], f"there is no such run: {text}")


def watcher(me, source):
    me.example(source)
    serving = me.start("serve", "--runs", "runs", "--port", "0", "--target", "cpu",
                       KERNELPRO_TOKEN=TOKEN)
    link = serving.line_with("page: http")
    check(TOKEN not in link, "a token that the watcher chose should not be printed")
    page = Page(re.search(r"http://[^/ ]+", link).group())
    is_refused_without_the_token(page)
    check(page.get("/runs")["runs"] == [], "there is no run yet")

    # One run while it goes. It would take minutes; it is stopped from the page.
    going = me.start("optimize", "softmax", "--target", "cpu", "--evaluations", "200", "--near-ceiling", "0",
                     "--run", "runs/first")
    first = page.runs(lambda runs: runs and runs[0]["state"] == "running")[0]["id"]
    head, rows = page.follow(first, lambda head, rows: len(rows) >= 2)
    check(head["state"] == "running", f"it runs: {head['state']}")
    detail = page.get(f"/run/{first}/candidate/{rows[0]['id']}")
    check("softmax" in json.dumps(detail), "a candidate's source should be there")
    page.does(first, "resume", refused=True)
    page.does(first, "stop")
    _, rows = page.follow(first, lambda head, rows: head["state"] != "running")
    stopped = going.end()
    check(stopped.status == 130, "it should end as by Ctrl+C", stopped)
    stopped.says("kernelpro resume runs/first")
    page.does(first, "stop", refused=True)

    # A second run, and the first one goes on beside it; the page follows both.
    beside = me.start("optimize", "softmax", "--target", "cpu", "--evaluations", "2",
                      "--run", "runs/second", "--seed", "2")
    page.does(first, "resume")
    before = len(rows)
    page.follow(first, lambda head, rows: head["state"] == "running" and len(rows) > before)
    runs = page.runs(lambda runs: len(runs) == 2)
    second = next(run["id"] for run in runs if run["id"] != first)
    page.does(first, "stop")
    head, rows = page.follow(first, lambda head, rows: head["state"] != "running")
    orders = [row["order"] for row in rows]
    check(orders == list(range(1, len(rows) + 1)), f"each evaluation once, in order: {orders}")
    log = me.work / "runs/first/resume.log"
    until(lambda: "kernelpro resume" in log.read_text(), "resume.log should say how it ended")
    head, rows = page.follow(second, lambda head, rows: head["state"] != "running")
    check(len(rows) == 2, f"the second run has 2 evaluations, not {len(rows)}")
    ended = beside.end()
    check(ended.status == 0, "the second run should end well", ended)
    finished = {run["id"]: run["finished"] for run in page.get("/runs")["runs"]}
    check(finished == {first: False, second: True}, f"one is finished: {finished}")
    status, text = page.ask(f"/run/{second}/report")
    check(status == 200 and "<html" in text and "softmax" in text, f"the saved report: {status}")

    ended = serving.end(signal.SIGTERM)
    check(ended.status == 0, "the server should end well", ended)


if __name__ == "__main__":
    tell(watcher, "KERNELPRO SOURCE_DIR")
