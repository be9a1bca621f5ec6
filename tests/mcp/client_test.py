# SPDX-License-Identifier: Apache-2.0
"""The scenario of a coding agent, through the official client, over both transports.

    client_test.py KERNELPRO     (run.py starts it, in an environment that has the client)
"""

import contextlib
import functools
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import anyio
import httpx2
from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

KERNELPRO = sys.argv.pop(1) if len(sys.argv) > 1 else "kernelpro"
TASKS = str(Path(__file__).resolve().parents[1] / "tasks")
EXAMPLES = str(Path(__file__).resolve().parents[2] / "examples")
OPTIONS = ["--target", "cpu", "--no-record", "--timeout", "600"]
PATIENCE = 300  # seconds; for what takes a few on an idle machine, and less than a call's limit

CODE = """// Doubles every element.
void twice(const float* x, float* y, int n) {
  for (int i = 0; i < n; ++i) y[i] = x[i] + x[i];
}
"""
DEFINITION = """[task]
name = "twice"
[[tensor]]
name = "x"
role = "input"
dtype = "fp32"
shape = ["N"]
[[tensor]]
name = "y"
role = "output"
dtype = "fp32"
shape = ["N"]
[[case]]
name = "only"
dims = { N = 65536 }
timed = true
targets = ["cpu"]
"""
TWICE = """#include "task.h"
extern "C" void {what} {{
  for (int i = 0; i < N; ++i) args.y[i] = {body};
}}
"""

KERNEL = """// idea: {idea}
#include "task.h"
extern "C" void launch(const Args& args) {{
  for (int i = 0; i < N; ++i) args.y[i] = {body};
}}
"""
GOOD = KERNEL.format(idea="the sum the other way round", body="args.z[i] + 2 * args.x[i]")
OTHER = KERNEL.format(idea="two sums", body="args.x[i] + args.z[i] + args.x[i]")
WRONG = KERNEL.format(idea="one x too few", body="args.x[i] + args.z[i]")
ENDLESS = """#include "task.h"
extern "C" void launch(const Args& args) {
  volatile int on = 1;
  while (on) {}
  args.y[0] = 0;
}
"""


def own_tasks(folder):
    """The first folder of a server: make_task writes there."""
    made = Path(folder) / "made"
    made.mkdir(exist_ok=True)
    return str(made)


@contextlib.asynccontextmanager
async def stdio_session(folder):
    parameters = StdioServerParameters(
        command=KERNELPRO, args=["mcp", own_tasks(folder), TASKS, EXAMPLES, *OPTIONS], cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", folder)})
    with open(Path(folder) / "stderr", "w") as log:
        async with stdio_client(parameters, errlog=log) as streams:
            async with ClientSession(*streams) as session:
                yield session


@contextlib.contextmanager
def http_server(folder):
    environment = dict(os.environ, KERNELPRO_TOKEN="of-the-test")
    command = [KERNELPRO, "serve", own_tasks(folder), TASKS, EXAMPLES, "--port", "0", *OPTIONS]
    server = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        yield server.stdout.readline().split()[-1]
    finally:
        server.terminate()
        assert server.wait(PATIENCE) == 0
        server.stdout.close()


@contextlib.asynccontextmanager
async def http_session(folder):
    with http_server(folder) as url:
        headers = {"Authorization": "Bearer of-the-test"}
        async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE, trust_env=False) as client:
            async with streamable_http_client(url, http_client=client) as streams:
                async with ClientSession(streams[0], streams[1]) as session:
                    yield session


class Scenario:
    """What both transports may do differently; `session` opens one in a folder."""

    session = None

    def in_session(self, scenario):
        async def work():
            with tempfile.TemporaryDirectory() as folder:
                async with self.session(folder) as session:
                    hello = await session.initialize()
                    self.assertEqual(hello.server_info.name, "kernelpro")
                    await scenario(session)

        anyio.run(work)

    async def call(self, session, tool, arguments, **more):
        result = await session.call_tool(tool, arguments, **more)
        self.assertEqual(result.content[0].type, "text")
        return result, result.content[0].text

    def test_an_agent_at_work(self):
        async def scenario(session):
            listed = await session.list_tools()
            self.assertIn("evaluate", [tool.name for tool in listed.tools])
            result, text = await self.call(session, "list_tasks", {})
            self.assertIn("axpy", [task["name"] for task in result.structured_content["tasks"]])
            self.assertIn("softmax", text)
            _, text = await self.call(session, "read_task", {"task": "axpy"})
            self.assertIn('extern "C" void launch(const Args& args)', text)
            self.assertLess(len(text), 8000)

            seen = []

            async def heard(progress, total, message):
                seen.append((progress, message))

            result, text = await self.call(
                session, "evaluate", {"task": "axpy", "source": WRONG}, progress_callback=heard)
            self.assertEqual(result.structured_content["outcome"], "wrong-result", text)
            self.assertFalse(result.is_error)
            self.assertGreater(len(seen), 3)
            self.assertEqual([s[0] for s in seen], sorted({s[0] for s in seen}))
            self.assertIn("compiling", [s[1] for s in seen])

            result, text = await self.call(session, "evaluate", {"task": "axpy", "source": GOOD})
            self.assertEqual(result.structured_content["outcome"], "correct", text)
            good = result.structured_content["candidate"]
            self.assertGreater(result.structured_content["time_us"], 0)
            result, text = await self.call(
                session, "compare", {"task": "axpy", "candidate_a": good, "source_b": OTHER})
            numbers = result.structured_content
            self.assertLessEqual(numbers["low"], numbers["ratio"])
            self.assertLessEqual(numbers["ratio"], numbers["high"])
            result, text = await self.call(session, "history", {})
            self.assertEqual(len(result.structured_content["candidates"]), 4)
            self.assertIn("one x too few", text)
            result, text = await self.call(session, "best", {"task": "axpy"})
            self.assertIn("extern", text)
            result, text = await self.call(session, "diagnose", {"candidate": good})
            self.assertEqual(result.structured_content["candidate"], good)
            result, text = await self.call(session, "finish", {})
            self.assertFalse(result.is_error, text)
            for file in result.structured_content["files"]:
                self.assertTrue(Path(file).exists(), file)
            shown = subprocess.run([KERNELPRO, "show", result.structured_content["run"]],
                                   capture_output=True, text=True)
            self.assertIn("axpy", shown.stdout)

        self.in_session(scenario)

    def test_from_code_to_a_report(self):
        async def scenario(session):
            arguments = {"name": "twice", "source": CODE, "file": "twice.cpp"}
            result, text = await self.call(session, "make_task", arguments)
            self.assertFalse(result.is_error, text)
            self.assertIn("TODO(kernelpro)", text)
            result, text = await self.call(session, "evaluate", {"task": "twice", "source": CODE})
            self.assertTrue(result.is_error, text)  # while anything is open

            # Decides what is open: the definition, and the sizes.
            reference = TWICE.format(what="reference(const ReferenceArgs& args)",
                                     body="2.0 * args.x[i]")
            decided = {"reference.cpp": reference, "task.toml": DEFINITION}
            arguments = {"name": "twice", "files": decided}
            result, text = await self.call(session, "make_task", arguments)
            self.assertFalse(result.is_error, text)
            self.assertNotIn("TODO(kernelpro)", text)
            kernel = TWICE.format(what="launch(const Args& args)", body="2 * args.x[i]")
            result, text = await self.call(session, "evaluate", {"task": "twice", "source": kernel})
            self.assertEqual(result.structured_content["outcome"], "correct", text)
            candidate = result.structured_content["candidate"]
            result, text = await self.call(session, "diagnose", {"candidate": candidate})
            self.assertIn("call takes", text)
            result, text = await self.call(session, "best", {"task": "twice"})
            self.assertIn("extern", text)
            result, text = await self.call(session, "finish", {})
            self.assertFalse(result.is_error, text)

            # An agent elsewhere reads the results as resources.
            listed = (await session.list_resources()).resources
            named = {str(each.uri).rsplit("/", 1)[1]: str(each.uri) for each in listed}
            self.assertLessEqual({"report.html", "report.txt", "report.json", "kernel"}, set(named))
            for name, holds in [("report.html", "<html"), ("report.txt", "twice"),
                                ("report.json", '"candidates"'), ("kernel", "launch(")]:
                contents = (await session.read_resource(named[name])).contents
                self.assertIn(holds, contents[0].text, name)

        self.in_session(scenario)

    def test_a_call_that_is_given_up(self):
        async def scenario(session):
            # The start is checked and timed first; the second time it is the endless kernel.
            running = anyio.Event()
            phases = []

            async def heard(progress, total, message):
                phases.append(message)
                if phases.count("checking and timing") == 2:
                    running.set()

            with anyio.fail_after(PATIENCE):
                async with anyio.create_task_group() as group:
                    group.start_soon(functools.partial(
                        session.call_tool, "evaluate", {"task": "axpy", "source": ENDLESS},
                        progress_callback=heard))
                    await running.wait()
                    group.cancel_scope.cancel()
            # A call's limit is longer: the next would wait for it if it were still there.
            with anyio.fail_after(PATIENCE):
                result, text = await self.call(session, "evaluate", {"task": "axpy", "source": GOOD})
            self.assertEqual(result.structured_content["outcome"], "correct", text)

        self.in_session(scenario)


class Stdio(Scenario, unittest.TestCase):
    session = staticmethod(stdio_session)

    def test_a_mistake_is_told_to_the_model(self):
        async def scenario(session):
            for tool, arguments in [
                ("evaluate", {"task": "no-such-task", "source": GOOD}),
                ("evaluate", {"task": "axpy", "source": "no kernel at all"}),
                ("evaluate", {"task": "axpy", "source": GOOD, "knobs": {"TILE": "3"}}),
                ("read_task", {"task": "/etc"}),
                ("best", {"task": "relu"}),
                ("read_code", {"library": "none", "path": "../../etc/passwd"}),
            ]:
                result, text = await self.call(session, tool, arguments)
                self.assertTrue(result.is_error, text)
                self.assertIn("next:", text)

        self.in_session(scenario)

    def test_two_calls_at_once(self):
        async def scenario(session):
            answers = {}

            async def evaluate(name, source):
                answers[name] = await session.call_tool(
                    "evaluate", {"task": "axpy", "source": source})

            async with anyio.create_task_group() as group:
                group.start_soon(evaluate, "good", GOOD)
                group.start_soon(evaluate, "other", OTHER)
                group.start_soon(session.send_ping)
            numbers = {a.structured_content["candidate"] for a in answers.values()}
            self.assertEqual(len(numbers), 2)
            for answer in answers.values():
                self.assertEqual(answer.structured_content["outcome"], "correct")

        self.in_session(scenario)

    def test_the_client_finds_the_version_by_itself(self):
        async def work():
            with tempfile.TemporaryDirectory() as folder:
                parameters = StdioServerParameters(command=KERNELPRO, cwd=folder,
                                                   args=["mcp", TASKS, *OPTIONS])
                async with Client(parameters) as client:
                    listed = await client.list_tools()
                    self.assertIn("finish", [tool.name for tool in listed.tools])

        anyio.run(work)


class Http(Scenario, unittest.TestCase):
    session = staticmethod(http_session)

    def test_the_client_finds_the_version_by_itself(self):
        async def work():
            with tempfile.TemporaryDirectory() as folder, http_server(folder) as url:
                headers = {"Authorization": "Bearer of-the-test"}
                async with httpx2.AsyncClient(headers=headers, trust_env=False) as http:
                    async with Client(streamable_http_client(url, http_client=http)) as client:
                        listed = await client.list_tools()
                        self.assertIn("finish", [tool.name for tool in listed.tools])

        anyio.run(work)

    def test_a_wrong_token_is_refused(self):
        with tempfile.TemporaryDirectory() as folder, http_server(folder) as url:
            with httpx2.Client(trust_env=False) as http:
                answer = http.post(url, json={}, headers={"Authorization": "Bearer other"})
                self.assertEqual(answer.status_code, 401)


if __name__ == "__main__":
    unittest.main()
