# SPDX-License-Identifier: Apache-2.0
"""What candidates gained over their parents, by arm: the tables of ablation.py (`table`, `promised`), and how
tables show times and ratios."""
import json
import math
import os
import random
import re
import statistics


def micro(us):
    return f"{us / 1000:.2f} ms" if us >= 1000 else f"{us:.{0 if us >= 100 else 1}f} us"


def times(ratio):
    return "-" if ratio is None else f"{ratio:.{2 if ratio < 10 else 1}f}x"


def geometric(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def interval(values, seed=1, rounds=10000):
    """95 % percentile bootstrap interval of the geometric mean."""
    chance = random.Random(seed)
    means = sorted(geometric(chance.choices(values, k=len(values))) for _ in range(rounds))
    return means[int(0.025 * rounds)], means[int(0.975 * rounds) - 1]


def gain(row):
    return row["ratio"] if row["outcome"] == "correct" and row["ratio"] else 1.0


def table(options):
    with open(options.rows, encoding="utf-8") as file:
        rows = [row for row in map(json.loads, file) if row["parent"] not in options.without]
    best = {}  # arm -> parent -> gain of the better candidate
    print("| arm | parents | candidates | correct | clearly faster | geometric mean of the better | 95 % interval | "
          "best |\n|---|---|---|---|---|---|---|---|")
    for arm in dict.fromkeys(row["arm"] for row in rows):
        mine = [row for row in rows if row["arm"] == arm]
        best[arm] = {}
        for row in mine:
            best[arm][row["parent"]] = max(best[arm].get(row["parent"], 1.0), gain(row))
        values = list(best[arm].values())
        low, high = interval(values)
        print(f"| {arm} | {len(values)} | {len(mine)} | {sum(r['outcome'] == 'correct' for r in mine)} | "
              f"{sum((r['low'] or 0) > 1 for r in mine)} | {geometric(values):.3f}x | {low:.3f} to {high:.3f} | "
              f"{max(values):.2f}x |")
    print("\n| arms | parents | ratio of the gains | 95 % interval | deviation of its logarithm | better, equal (within 2 %), worse |\n|---|---|---|---|---|---|")
    arms = list(best)
    for i, arm in enumerate(arms):
        for other in arms[:i]:
            both = sorted(set(best[arm]) & set(best[other]))
            ratios = [best[arm][p] / best[other][p] for p in both]
            low, high = interval(ratios)
            deviation = statistics.stdev(map(math.log, ratios))
            counts = (sum(r > 1.02 for r in ratios), sum(1 / 1.02 <= r <= 1.02 for r in ratios),
                      sum(r < 1 / 1.02 for r in ratios))
            print(f"| {arm} over {other} | {len(both)} | {geometric(ratios):.3f}x | {low:.3f} to {high:.3f} | "
                  f"{deviation:.2f} | {counts[0]}, {counts[1]}, {counts[2]} |")
    answers = {}
    for row in rows:
        if row["answers"] and row["arm"] not in ("none", "raw"):
            tool = re.split("[,:]", row["answers"])[0].strip("` ")
            answers.setdefault((row["arm"], tool), []).append(row)
    print("\n| arm | finding that was followed | candidates | correct | geometric mean of the correct |\n|---|---|---|---|---|")
    for (arm, tool), those in sorted(answers.items(), key=lambda item: (item[0][0], -len(item[1]), item[0][1])):
        right = [gain(row) for row in those if row["outcome"] == "correct"]
        print(f"| {arm} | {tool} | {len(those)} | {len(right)} | {f'{geometric(right):.3f}x' if right else '-'} |")


def promised(options):
    """What findings promised in the requests of an arm, and what the candidates that follow them brought."""
    with open(options.rows, encoding="utf-8") as file:
        rows = [row for row in map(json.loads, file) if row["arm"] == options.arm and row["outcome"] == "correct"]
    tools = {}
    for row in rows:
        path = os.path.join(options.folder, "requests", row["parent"], options.arm, "prompt.md")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for tool, likely, most in re.findall(r"^\d+\. \*\*([\w-]+)\*\* \([^;]*; likely ([\d.]+)x, at most ([\d.]+)x", text, re.M):
            if tool in row["answers"]:
                tools.setdefault(tool, []).append((row["parent"], gain(row), float(likely), float(most)))
                break
    print("| finding | candidates | promised, likely | brought | within 1.5x of the likely gain | at most the upper gain |\n"
          "|---|---|---|---|---|---|")
    every = [each for those in tools.values() for each in those]
    for tool, those in sorted(tools.items(), key=lambda item: -len(item[1])) + [("all", every)]:
        near = sum(1 / 1.5 <= got / likely <= 1.5 for _, got, likely, _ in those)
        print(f"| {tool} | {len(those)} | {geometric([l for _, _, l, _ in those]):.2f}x | "
              f"{geometric([g for _, g, _, _ in those]):.2f}x | {near} | "
              f"{sum(got <= 1.02 * most for _, got, _, most in those)} |")
