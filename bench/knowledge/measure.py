# SPDX-License-Identifier: Apache-2.0
"""Quality and speed of `kernelpro knowledge search` on CUTLASS, as a table.

    python3 bench/knowledge/measure.py --tree CUTLASS --kernelpro build/release/bin/kernelpro

The include/ and examples/ folders of the tree are copied and indexed in a separate state folder.
Each question of questions.toml is a call of the program (times include its start). The same words
go to two simple baselines: files ranked by how many of the words grep finds in them, and BM25 of
whole files over words split at case and underscores.
"""

import argparse
import fnmatch
import hashlib
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import tomllib

ENDINGS = {".h", ".hpp", ".hh", ".inl", ".c", ".cc", ".cpp", ".cu", ".cuh", ".py", ".md", ".txt",
           ".sh", ".toml", ".cmake", ".rst"}
STOP = set("a an the and or of to in on at by for with from into is are be it its this that as one "
           "after before several many without".split())


def files_of(root):
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            path = pathlib.Path(folder, name)
            if path.suffix in ENDINGS and not path.is_symlink():
                yield path.relative_to(root).as_posix(), path.read_text(errors="replace")


def query_words(text):
    return [w for w in re.findall(r"[A-Za-z0-9_]+", text) if w.lower() not in STOP and len(w) > 1]


class Grep:
    """grep -rlwi for each word; files with most of the words first, then most of the lines."""

    def __init__(self, root):
        self.root = root

    def search(self, text):
        found = {}
        for word in query_words(text):
            done = subprocess.run(["grep", "-rciwF", "--", word, "."], cwd=self.root, text=True,
                                  capture_output=True, check=False)
            for line in done.stdout.splitlines():
                path, count = line.rsplit(":", 1)
                path = path.removeprefix("./")
                if int(count) > 0 and pathlib.Path(path).suffix in ENDINGS:
                    words, lines = found.get(path, (0, 0))
                    found[path] = (words + 1, lines + int(count))
        return sorted(found, key=lambda p: (-found[p][0], -found[p][1], p))


class WholeFiles:
    """BM25 (k1 1.2, b 0.75) of whole files; identifiers whole and in parts."""

    def __init__(self, root):
        self.postings = {}
        self.lengths = {}
        for path, text in files_of(root):
            counts = {}
            for word in re.findall(r"[A-Za-z0-9_]+", path + "\n" + text):
                for token in self.tokens(word):
                    counts[token] = counts.get(token, 0) + 1
            self.lengths[path] = sum(counts.values())
            for token, count in counts.items():
                self.postings.setdefault(token, {})[path] = count
        self.mean = sum(self.lengths.values()) / max(1, len(self.lengths))

    known = {}

    def tokens(self, word):
        if word not in self.known:
            parts = re.findall(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+", word)
            self.known[word] = {word.lower(), *(p.lower() for p in parts)}
        return self.known[word]

    def search(self, text):
        scores = {}
        for token in {t for w in query_words(text) for t in self.tokens(w)}:
            files = self.postings.get(token, {})
            gain = math.log(1 + (len(self.lengths) - len(files) + 0.5) / (len(files) + 0.5))
            for path, count in files.items():
                norm = 1.2 * (0.25 + 0.75 * self.lengths[path] / self.mean)
                scores[path] = scores.get(path, 0) + gain * count * 2.2 / (count + norm)
        return sorted(scores, key=lambda p: (-scores[p], p))


class KernelPro:
    def __init__(self, program, root, state, language):
        self.language = ["--language", language] if language else []
        self.program = os.path.abspath(program)
        self.environment = dict(os.environ, KERNELPRO_STATE=state)
        begin = time.monotonic()
        text = self.call("add", "tree", root, "--json")
        self.add_seconds = time.monotonic() - begin
        self.report = json.loads(text)
        begin = time.monotonic()
        self.call("add", "tree", root, "--update", "--json")
        self.update_seconds = time.monotonic() - begin

    def call(self, *words):
        # One core, as in the stated figure.
        first = min(os.sched_getaffinity(0))
        command = [self.program, "knowledge", *words]
        if shutil.which("taskset"):
            command = ["taskset", "-c", str(first), *command]
        return subprocess.run(command, env=self.environment, text=True, capture_output=True,
                              check=True).stdout

    def search(self, text):
        return [h["path"] for h in json.loads(self.call("search", *text.split(), "-n", "20",
                                                        "--json", *self.language))]


def rank_of(paths, answers):
    for place, path in enumerate(paths):
        if any(fnmatch.fnmatch(path, answer) for answer in answers):
            return place + 1
    return None


def is_check(question):
    """A third of the plain questions, picked by a hash of their words: not for tuning."""
    return hashlib.sha256(question["words"].encode()).digest()[0] % 3 == 0


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", required=True, help="folder with include/ and examples/")
    parser.add_argument("--kernelpro", required=True, help="the program")
    parser.add_argument("--part", choices=["dev", "test", "blind", "blind2"],
                        help="only this part, without baselines")
    parser.add_argument("--language", choices=["cpp", "cuda", "python"],
                        help="what search prefers, as a run's task does")
    parser.add_argument("--misses", action="store_true", help="name the questions not answered")
    arguments = parser.parse_args()
    with open(pathlib.Path(__file__).with_name("questions.toml"), "rb") as file:
        questions = tomllib.load(file)["question"]
    if arguments.part:
        questions = [q for q in questions if q["part"] == arguments.part]

    with tempfile.TemporaryDirectory() as scratch:
        root = os.path.join(scratch, "tree")
        for name in ("include", "examples"):
            shutil.copytree(os.path.join(arguments.tree, name), os.path.join(root, name))
        ours = KernelPro(arguments.kernelpro, root, os.path.join(scratch, "state"),
                         arguments.language)
        ways = [("kernelpro", ours)]
        if not arguments.part:
            ways += [("BM25 of whole files", WholeFiles(root)), ("grep", Grep(root))]
        ranks, times = {}, {}
        for name, way in ways:
            for number, question in enumerate(questions):
                begin = time.monotonic()
                paths = way.search(question["words"])
                times.setdefault(name, []).append(1000 * (time.monotonic() - begin))
                ranks[name, number] = rank_of(paths[:20], question["answers"])

    columns = list(dict.fromkeys((q["kind"], q["part"]) for q in questions))
    columns.sort(key=lambda column: (column[0], ["dev", "test", "blind", "blind2"].index(column[1])))
    print("| way | " + " | ".join(f"{kind}, {part}" for kind, part in columns)
          + " | median ms | p95 ms |")
    print("|---|" + "---|" * (len(columns) + 2))
    for name, _ in ways:
        cells = []
        for column in columns:
            mine = [ranks[name, n] for n, q in enumerate(questions)
                    if (q["kind"], q["part"]) == column]
            first = sum(1 for r in mine if r == 1)
            five = sum(1 for r in mine if r and r <= 5)
            twenty = sum(1 for r in mine if r)
            cells.append(f"{five}/{len(mine)} = {100 * five / len(mine):.0f} % "
                         f"({first} first, {twenty} in twenty)")
        print(f"| {name} | " + " | ".join(cells)
              + f" | {percentile(times[name], 0.5):.0f} | {percentile(times[name], 0.95):.0f} |")
    print()
    for label, wanted in (("tuning", False), ("check", True)):
        mine = [ranks["kernelpro", n] for n, q in enumerate(questions)
                if q["kind"] == "plain" and is_check(q) == wanted]
        five = sum(1 for r in mine if r and r <= 5)
        if mine:
            print(f"Plain, {label} split: {five}/{len(mine)} = {100 * five / len(mine):.0f} %.")
    print()
    print(f"{ours.report['files']} files, {ours.report['bytes'] / 1e6:.1f} MB, "
          f"{ours.report['chunks']} pieces; indexed in {ours.add_seconds:.1f} s on one core, "
          f"brought up to date without changes in {ours.update_seconds:.2f} s.")
    if arguments.misses:
        for number, question in enumerate(questions):
            rank = ranks["kernelpro", number]
            if rank is None or rank > 5:
                print(f"- {question['kind']}, {question['part']}: {question['words']} ({rank})")


if __name__ == "__main__":
    main()
