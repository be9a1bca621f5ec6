#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Someone whose models are behind LiteLLM's proxy: optimizes with it, sees tokens and spend, and is
told at once of a wrong name, key or address.

    model_user.py KERNELPRO SOURCE_DIR VENV
    model_user.py --prepare VENV      makes the environment with LiteLLM, alone

The proxy is the real one, on loopback; the server behind it is persona.Model, so that nothing is
paid for. Exit status 77: LiteLLM cannot be had here, and nothing was tested.
"""

import os
import re
import socket
import sys
import urllib.error
import urllib.request
from pathlib import Path

from persona import HANG_S, check, model, tell, until

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from environment import prepare, python_in  # noqa: E402

KEY = "sk-of-the-model-user"
CONFIG = """model_list:
  - model_name: writer
    litellm_params:
      model: openai/{name}
      api_base: {address}
      api_key: key-of-the-upstream
      max_retries: 0
  - model_name: misnamed
    litellm_params:
      model: openai/no-such-model
      api_base: {address}
      api_key: key-of-the-upstream
      max_retries: 0
general_settings:
  master_key: {key}
"""
PRICES = """[[price]]
model = "{model}"
input = 2.0
output = 10.0
as_of = "2025-06-01"
"""
KERNEL = """#include "task.h"
// @knob WIDE 4 8 : vectorize
extern "C" void launch(const Args& args) {
  for (int r = 0; r < ROWS; ++r) {
    const float* x = args.x + static_cast<long>(r) * COLS;
    float* y = args.y + static_cast<long>(r) * COLS;
    float most = x[0], sum = 0;
    for (int c = 1; c < COLS; ++c) most = x[c] > most ? x[c] : most;
    for (int c = 0; c < COLS; ++c) sum += y[c] = __builtin_expf(x[c] - most);
    for (int c = 0; c < COLS; ++c) y[c] /= sum;
  }
}
"""


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def proxy(me, python, upstream):
    """Starts LiteLLM; returns its address once it answers."""
    (me.work / "litellm.yaml").write_text(
        CONFIG.format(name=upstream.NAME, address=upstream.address, key=KEY))
    port = free_port()
    # The list of prices comes with the package; nothing is fetched or reported.
    going = me.start("--config", "litellm.yaml", "--host", "127.0.0.1", "--port", port,
                     program=str(python.parent / "litellm"), LITELLM_LOCAL_MODEL_COST_MAP="True",
                     LITELLM_TELEMETRY="False", NO_PROXY="*",
                     PATH=f"{python.parent}{os.pathsep}{me.environment['PATH']}")
    address = f"http://127.0.0.1:{port}/v1"
    request = urllib.request.Request(f"{address}/models",
                                     headers={"Authorization": f"Bearer {KEY}"})
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def listens():
        if going.process.poll() is not None:
            check(False, "LiteLLM ended", going.end())
        try:
            with direct.open(request, timeout=HANG_S) as answer:
                return "writer" in answer.read().decode()
        except (urllib.error.URLError, ConnectionError):
            return False

    until(listens, "LiteLLM does not answer")
    return address


def writes_kernels(me, address, upstream):
    name = f"{address}#writer"
    words = ["optimize", "softmax", "--target", "cpu", "--evaluations", "3", "--tune", "0",
             "--ideas", "2", "--max-calls", "8"]
    done = me.run(*words, "--model", name, "--run", "runs/unpriced", KERNELPRO_API_KEY=KEY)
    asked = len(upstream.asked)
    check(asked >= 3, f"a plan and two kernels should have been asked for, not {asked} answers")
    tokens = asked * (upstream.INPUT + upstream.OUTPUT)
    done.says("planner", f"{asked} requests, {tokens} tokens", "price unknown")
    check(KEY not in done.text, "the key is not for the screen", done)

    # With a price, the spend is shown, and can be limited.
    me.run(*words, "--model", name, "--max-usd", "1", status=2,
           KERNELPRO_API_KEY=KEY).refused("price", "--max-tokens")
    prices = me.work / "prices.toml"
    prices.write_text(PRICES.format(model=address))
    priced = {"KERNELPRO_API_KEY": KEY, "KERNELPRO_PRICES": str(prices)}
    done = me.run(*words, "--model", name, "--max-usd", "1", "--run", "runs/priced", **priced)
    asked = len(upstream.asked) - asked
    spent = asked * (2.0 * upstream.INPUT + 10.0 * upstream.OUTPUT) / 1e6
    done.says(re.escape(f"{asked} requests, {asked * 1100} tokens, ${spent:.4f}"))
    me.run("show", "runs/priced").says(f"{asked * 1100} tokens", "2 coder, 1 planner")
    run = me.run("show", "runs/priced", "--json").json()
    check(len(run["candidates"]) == 3, f"three candidates: {len(run['candidates'])}")
    check(all(call["usage"] for call in run["calls"]), "every call has what it used")
    check(KEY not in (me.work / "runs/priced/report.html").read_text(), "nor for the report")

    # A budget that holds not even one request ends the run before a question is sent.
    before = len(upstream.asked)
    low = me.run(*words, "--model", name, "--max-usd", "0.001", "--run", "runs/low", status=7,
                 **priced)
    low.refused("budget")
    check(len(upstream.asked) == before, "nothing should be asked beyond the budget", low)


def is_told_at_once(me, address, upstream):
    """A name, key or address that is wrong: nothing is measured, and nothing is paid for."""
    before = len(upstream.asked)

    def refused(what, model_name, phrase, key=KEY):
        words = ["optimize", "softmax", "--target", "cpu", "--evaluations", "2", "--tune", "0",
                 "--run", "none"]
        done = me.run(*words, "--model", model_name, status=(2, 3, 7), KERNELPRO_API_KEY=key)
        done.refused(phrase)
        early = not re.search(r"evaluated|prepared", done.text)
        check(early, f"{what} is found before anything is measured")

    refused("a name that is none", "litellm:writer", "names no model")
    refused("a closed port", f"http://127.0.0.1:{free_port()}/v1#writer", "connect")
    refused("a wrong name at the model's own server", f"{upstream.address}#wrong", "wrong")
    refused("a name that LiteLLM does not have", f"{address}#wrong", "model=wrong")
    refused("a model that the server behind LiteLLM does not have", f"{address}#misnamed",
            "no-such-model")
    refused("a key that LiteLLM refuses", f"{address}#writer", "400|401|403",
            key="sk-wrong")
    check(not (me.work / "none").exists(), "a refused start should leave no run")
    check(len(upstream.asked) == before, "nothing of this should be paid for")


def model_user(me, source, venv):
    python = python_in(Path(venv).resolve(), HERE / "requirements.txt")
    me.example(source)
    with model(lambda prompt: KERNEL) as upstream:
        address = proxy(me, python, upstream)
        writes_kernels(me, address, upstream)
        is_told_at_once(me, address, upstream)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--prepare":
        prepare(sys.argv[2], HERE / "requirements.txt")
    else:
        tell(model_user, "KERNELPRO SOURCE_DIR VENV")
