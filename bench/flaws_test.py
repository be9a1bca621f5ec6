#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the scores of flaws.py and the parser of ncu_rules.py, without a GPU."""

import contextlib
import io
import json
import os
import stat
import sys
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import flaws
import ncu_rules

COLUMNS = ["ID", "Kernel Name", "Section Name", "Metric Name", "Metric Unit", "Metric Value",
           "Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type",
           "Estimated Speedup"]


def row(**values):
    return ",".join('"%s"' % values.get(c.replace(" ", "_"), "") for c in COLUMNS)


def finding(classes, likely, upper, stop=False, name="a-tool"):
    return flaws.Finding(name, set(classes), likely, upper, stop)


def pair(flawed, mended, flaw="bank-conflicts", symptoms=(), times=(300.0, 100.0)):
    def kernel(findings, us):
        return types.SimpleNamespace(findings={"j": findings}, time_us=us, problem="")
    made = flaws.Pair.__new__(flaws.Pair)
    made.name, made.flaw, made.symptoms = "task/flaw", flaw, set(symptoms)
    made.flawed, made.mended = kernel(flawed, times[0]), kernel(mended, times[1])
    return made


class Suite(unittest.TestCase):
    def test_every_flaw_is_of_a_class_and_every_class_has_one(self):
        pairs, sound = flaws.load_suite([], lambda sealed: True)
        self.assertEqual({p.flaw for p in pairs}, flaws.known_classes())
        self.assertGreaterEqual(len(pairs), 36)
        self.assertGreaterEqual(len(sound), 14)
        for each in pairs:
            self.assertNotIn(each.flaw, each.symptoms, each.name)

    def test_a_third_is_sealed_and_left_out(self):
        every, sound = flaws.load_suite([], lambda sealed: True)
        opened, opened_sound = flaws.load_suite([], lambda sealed: not sealed)
        self.assertGreaterEqual(3 * (len(every) - len(opened)), len(every))
        self.assertGreaterEqual(3 * (len(sound) - len(opened_sound)), len(sound))

    def test_sealed_sound_kernels_exist(self):
        for path in flaws.read_toml(os.path.join(flaws.FLAWS, "sound.toml"))["sealed"]:
            self.assertTrue(os.path.exists(os.path.join(flaws.FLAWS, path)), path)

    def test_pairs_differ(self):
        for each in flaws.load_suite([], lambda sealed: True)[0]:
            with open(each.flawed.path) as a, open(each.mended.path) as b:
                self.assertNotEqual(a.read(), b.read(), each.name)


class Scores(unittest.TestCase):
    def test_named_first(self):
        score = flaws.score_pair(pair([finding(["bank-conflicts"], 2.2, 3.5)], []), "j")
        self.assertEqual((score["rank"], score["loose"]), (1, 1))
        self.assertTrue(score["silenced"] and score["close"] and score["bounded"])

    def test_symptom_before_flaw(self):
        found = [finding(["scalar-loads"], 1.5, 2.9), finding(["bank-conflicts"], 1.9, 2.9)]
        score = flaws.score_pair(pair(found, found, symptoms=["scalar-loads"]), "j")
        self.assertEqual((score["rank"], score["loose"]), (2, 1))
        self.assertFalse(score["silenced"])
        self.assertFalse(score["close"])    # 3.0 measured, 1.9 likely
        self.assertFalse(score["bounded"])  # 3.0 measured, 2.9 upper

    def test_missed(self):
        score = flaws.score_pair(pair([finding(["divergence"], 3, 3)], []), "j")
        self.assertEqual((score["rank"], score["loose"]), (0, 0))
        self.assertFalse(score["close"])
        self.assertIsNone(score["silenced"])  # no finding that could disappear
        self.assertIsNone(score["bounded"])

    def test_small_promises_and_stop_accuse_nobody(self):
        quiet = [finding(["bank-conflicts"], 1.05, 1.2), finding(["bank-conflicts"], 1, 1, True)]
        self.assertTrue(flaws.score_pair(pair(quiet, quiet), "j")["silenced"])
        kernel = types.SimpleNamespace(findings={"j": quiet})
        self.assertTrue(flaws.score_sound(kernel, "j")["clean"])
        self.assertFalse(flaws.score_sound(kernel, "j")["alone"])
        kernel.findings["j"] = [finding(["divergence"], 1.3, 2)]
        self.assertFalse(flaws.score_sound(kernel, "j")["clean"])


class NcuRules(unittest.TestCase):
    def test_order_is_by_the_calls_gain(self):
        text = "\n".join([
            "==PROF== Connected to process 1", "==WARNING== Unable to access a metric.", "", "",
            "==PROF== Disconnected from process 1", ",".join('"%s"' % c for c in COLUMNS),
            row(ID="0", Kernel_Name="f", Metric_Name="Duration", Metric_Unit="us",
                Metric_Value="1,000.00"),
            row(ID="1", Kernel_Name="g", Metric_Name="Duration", Metric_Unit="ms",
                Metric_Value="3.0"),
            row(ID="0", Kernel_Name="f", Rule_Name="Small", Rule_Type="OPT", Rule_Description="s",
                Estimated_Speedup_Type="global", Estimated_Speedup="80"),
            row(ID="1", Kernel_Name="g", Rule_Name="Large", Rule_Type="OPT", Rule_Description="l",
                Estimated_Speedup_Type="global", Estimated_Speedup="50"),
            row(ID="1", Kernel_Name="g", Rule_Name="Part", Rule_Type="OPT", Rule_Description="p",
                Estimated_Speedup_Type="local", Estimated_Speedup="99"),
            row(ID="1", Kernel_Name="g", Rule_Name="MemoryL2Compression", Rule_Type="OPT",
                Rule_Description="c", Estimated_Speedup_Type="global", Estimated_Speedup="90"),
            row(ID="1", Kernel_Name="g", Rule_Name="Note", Rule_Type="INF", Rule_Description="n"),
        ])
        found = ncu_rules.read(text)
        self.assertEqual([f.rule for f in found], ["Large", "Small", "Part"])
        self.assertAlmostEqual(found[0].gain, 1 / (1 - 0.5 * 0.75))
        self.assertAlmostEqual(found[1].gain, 1 / (1 - 0.8 * 0.25))

    def test_matching_by_words(self):
        match = flaws.Match.__new__(flaws.Match)
        match.rules = [{"contains": "Bank Conflict", "classes": ["bank-conflicts"]},
                       {"rule": "Other", "classes": ["divergence"]}]
        self.assertEqual(match.of_rule("Any", "a 32-way bank conflict"), {"bank-conflicts"})
        self.assertEqual(match.of_rule("Any", "nothing"), set())
        self.assertEqual(match.of_rule("Other", "nothing"), {"divergence"})


# A fake kernelpro: answers `diagnose FILE --json` with what the file holds as "said".
PROGRAM = """#!/bin/sh
exec %s -c 'import json, sys; print(json.dumps({"findings": json.load(open(sys.argv[1]))["said"]}))' "$2"
""" % sys.executable


class Stored(unittest.TestCase):
    def test_stored_evidence_is_diagnosed_again(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "kernelpro")
            with open(program, "w") as file:
                file.write(PROGRAM)
            os.chmod(program, os.stat(program).st_mode | stat.S_IXUSR)
            match = types.SimpleNamespace(of_tool=lambda tool: {"class of " + tool})
            kernel = flaws.Kernel(os.path.join(flaws.FLAWS, "copy"),
                                  os.path.join(flaws.FLAWS, "copy", "sound-x.cu"))
            flaws.store(folder, kernel, {
                "evidence": {"said": [{"tool": "t", "likely_speedup": 2, "upper_speedup": 3}]},
                "outcome": "correct", "reason": "", "time_us": 5.0, "machine": "m", "hash": "h"})
            flaws.diagnose_again(program, folder, kernel, match)
            self.assertEqual(kernel.problem, "")
            self.assertEqual(kernel.time_us, 5.0)
            self.assertEqual(kernel.findings["kernelpro"][0].classes, {"class of t"})

    def test_what_was_not_stored_is_said(self):
        kernel = flaws.Kernel(flaws.FLAWS, os.path.join(flaws.FLAWS, "copy", "sound-y.cu"))
        flaws.diagnose_again("/nonexistent", "/nonexistent", kernel, None)
        self.assertEqual(kernel.problem, "not stored")


class Report(unittest.TestCase):
    def test_figures_are_printed(self):
        good = pair([finding(["bank-conflicts"], 2.8, 4)], [])
        void = pair([], [], times=(105.0, 100.0))
        sound = types.SimpleNamespace(name="s", time_us=1.0, problem="", findings={"j": []})
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            results = flaws.report([good, void], [sound], ["j"])
        self.assertIn("no flaw here", out.getvalue())
        self.assertIn("1/1 (100 %)", out.getvalue())
        self.assertEqual(len(results["judges"]["j"]["pairs"]), 1)
        json.dumps(results)


if __name__ == "__main__":
    unittest.main()
