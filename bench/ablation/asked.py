#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Answers about the candidates of a run, from what was measured of them: `ask` beside a request of the arm
`asked`, which generations.py copies there with its .answers.json."""
import json
import os
import sys

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".answers.json"), encoding="utf-8") as file:
    DATA = json.load(file)


def of(number):
    if number not in DATA["candidates"]:
        sys.exit("Known candidates: " + ", ".join(DATA["candidates"]))
    return DATA["candidates"][number]


def parts(account):
    """[(kernel or "the call", part, microseconds)]"""
    def name(part):
        return part["part"] + (" (" + part["stall"] + ")" if part.get("stall") else "")
    out = [("the call", name(part), part["us"]) for part in account.get("parts", [])]
    for kernel in account.get("kernels", []):
        out += [(kernel["kernel"].split("(")[0], name(part), part["us"]) for part in kernel["parts"]]
    return out


def place(each):
    because = each.get("because") or {}
    text = f'line {each["at"]["line"]} `{each["at"].get("text", "")}`: {100 * each["share"]:.1f} % of the kernel\'s time ({each["us"]:.1f} us), {each.get("stall", "")}'
    if because.get("at"):
        text += f', because of line {because["at"]["line"]} `{because["at"].get("text", "")}`'
    return text + f'; {each["gain"]:.2f}x if that went. It goes if {each.get("goes_if", "")}.'


def account(number):
    d = of(number)
    print(f'The call takes {d["account"].get("us", 0):.1f} us; the least is {d["floor_us"]:.1f} us ({d["bound"]}-bound).')
    for kernel, part, us in parts(d["account"]):
        if us >= 0.005 * d["account"]["us"]:
            print(f'  {kernel}: {part}: {us:.1f} us')
    for kernel in d["account"].get("kernels", []):
        for each in kernel.get("places", []):
            print("  " + kernel["kernel"].split("(")[0] + ", " + place(each))
        if kernel.get("mix"):
            print("  " + kernel["kernel"].split("(")[0] + " issues " +
                  ", ".join(f'{100 * m["share"]:.0f} % {m["kind"]}' for m in kernel["mix"]))


def line(wanted, number):
    found = [(k, p) for k in of(number)["account"].get("kernels", []) for p in k.get("places", [])
             if p["at"]["line"] == int(wanted)]
    print("\n".join(place(p) for _, p in found) or "This line is not among the costliest places.")


def tools():
    for name, what in sorted(DATA["tools"].items()):
        print(f"{name}: {what}")


def tool(name, number):
    if name not in DATA["tools"]:
        sys.exit("There is no such tool; ./ask tools lists them.")
    for finding in of(number)["every"].get(name, []):
        print(f'{finding["cause"]} Likely {finding.get("likely_speedup", 1):.2f}x, at most {finding.get("upper_speedup", 1):.2f}x.')
        for each in finding.get("prescriptions", []):
            print(f'- [{each["tag"]}] {each["text"]}' + (f' Not when {each["not_when"]}.' if each.get("not_when") else ""))
        return
    ran = [each for each in of(number)["tools"] if each["tool"] == name]
    print("It found nothing." if not ran or not ran[0].get("reason") else "Not run: " + ran[0]["reason"])


def compare(first, second):
    a, b = ({(k, p): us for k, p, us in parts(of(n)["account"])} for n in (first, second))
    for key in sorted(set(a) | set(b), key=lambda key: -abs(b.get(key, 0) - a.get(key, 0)))[:12]:
        print(f"  {key[0]}: {key[1]}: {a.get(key, 0):.1f} -> {b.get(key, 0):.1f} us")


def main(words):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "asked.txt"), "a", encoding="utf-8") as file:
        file.write(" ".join(words) + "\n")
    verb, rest = (words or ["help"])[0], words[1:]
    most = {"account": 1, "line": 2, "tools": 0, "tool": 2, "compare": 2}
    least = {"account": 0, "line": 1, "tools": 0, "tool": 1, "compare": 2}
    if verb not in most or not least[verb] <= len(rest) <= most[verb]:
        sys.exit("ask account [N] | line LINE [N] | tools | tool NAME [N] | compare A B")
    if verb in ("account", "line", "tool") and len(rest) < most[verb]:
        rest.append(DATA["parent"])
    globals()[verb](*rest)


main(sys.argv[1:])
