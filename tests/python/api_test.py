# SPDX-License-Identifier: Apache-2.0
"""The package against the real program: verdicts, runs, errors. $KERNELPRO_PROGRAM names it."""

import importlib.util
import os
import tempfile
import unittest
from pathlib import Path

import kernelpro
from kernelpro.program import arguments_of

TASKS = Path(__file__).resolve().parents[1] / "tasks"
AXPY = TASKS / "axpy"
RIGHT = """#include "task.h"
// @knob STEP 1 4 8 : unroll
extern "C" void launch(const Args& args) {
  for (int i = 0; i < N; i += STEP)
    for (int k = i; k < i + STEP && k < N; ++k) args.y[k] = args.z[k] + 2 * args.x[k];
}
"""
WRONG = RIGHT.replace("2 *", "3 *")
BROKEN = RIGHT.replace("STEP)", "STEP")


class InAFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        Path("right.cpp").write_text(RIGHT)


class Options(unittest.TestCase):
    def test_are_the_commands_own(self):
        self.assertEqual(
            arguments_of({"evaluations": 24, "no_record": True, "no_memory": False, "run": None,
                          "gpu": [0, 1], "knob": {"A": 1, "B": "x"}, "prompts": Path("p")}),
            ["--evaluations=24", "--no-record", "--gpu=0", "--gpu=1", "--knob=A=1", "--knob=B=x",
             "--prompts=p"])

    def test_what_the_program_is(self):
        self.assertEqual(str(kernelpro.program()), os.environ["KERNELPRO_PROGRAM"])
        self.assertRegex(kernelpro.version(), r"^\d+\.\d+\.\d+")


class Evaluate(InAFolder):
    def test_a_correct_kernel(self):
        verdict = kernelpro.evaluate(AXPY, "right.cpp", target="cpu", knob={"STEP": 4})
        self.assertTrue(verdict.correct, verdict.reason)
        self.assertEqual((verdict.task, verdict.target), ("axpy", "cpu"))
        self.assertEqual(dict(verdict.knobs), {"STEP": "4"})
        self.assertGreater(verdict.time_us, 0)
        timing, = verdict.timings
        self.assertLessEqual(timing.low_us, timing.median_us)
        self.assertLessEqual(verdict.versus.low, verdict.versus.ratio)
        # A machine whose cache holds all of it: the call is too short for a limit.
        self.assertIn(verdict.diagnosis.bound, ("memory", "latency"))
        self.assertIn("task.compulsory_bytes", [m.name for m in verdict.diagnosis.metrics])
        record = verdict.record()
        self.assertEqual(record["knob.STEP"], 4)
        self.assertEqual(record["time_us"], verdict.time_us)

    def test_a_text_is_a_kernel_too_and_a_failure_an_answer(self):
        wrong = kernelpro.evaluate(AXPY, WRONG, target="cpu")
        self.assertEqual((wrong.outcome, wrong.correct), ("wrong-result", False))
        self.assertIn("y", wrong.reason)
        self.assertIsNone(wrong.time_us)
        broken = kernelpro.evaluate(AXPY, BROKEN, language="cpp")
        self.assertEqual(broken.outcome, "compile-error")
        self.assertIn("error", broken.reason)

    def test_several_files(self):
        Path("wrong.cpp").write_text(WRONG)
        verdicts = kernelpro.evaluate_many(AXPY, ["right.cpp", Path("wrong.cpp")], no_timing=True)
        self.assertEqual([v.outcome for v in verdicts], ["correct", "wrong-result"])
        self.assertEqual(len(kernelpro.evaluate_many(AXPY, ["right.cpp"], no_timing=True)), 1)
        self.assertEqual(kernelpro.evaluate_many(AXPY, []), [])


class Runs(InAFolder):
    def test_events_result_and_records(self):
        heard = []
        live = kernelpro.optimize(AXPY, start="right.cpp", target="cpu", evaluations=3, run="r",
                                  near_ceiling=10, no_record=True, on_event=heard.append)
        self.assertEqual(live.directory, Path("r").absolute())
        events = list(live)
        result = live.result()
        self.assertEqual(events, heard)
        self.assertFalse(live.running)
        kinds = [event.kind for event in events]
        self.assertEqual(kinds[0], "prepared")
        self.assertEqual(kinds.count("evaluated"), 3)
        first = next(event for event in events if event.kind == "evaluated")
        self.assertEqual((first.candidate, first.evaluations, first.knobs["STEP"]), (1, 1, "1"))
        self.assertIn("#1", str(first))
        self.assertEqual((result.end, result.evaluations), ("done", 3))
        self.assertTrue(result.report.exists())
        self.assertEqual(result.faster, result.speedup.low > 1)

        run = kernelpro.load(result)
        self.assertEqual((run.task, run.target, run.evaluations), ("axpy", "cpu", 3))
        self.assertEqual(run.best.id, result.best)
        self.assertEqual(run.candidate(1).language, "cpp")
        self.assertEqual(run.candidate(1).source, RIGHT)
        with self.assertRaises(KeyError):
            run.candidate(99)
        records = run.records()
        self.assertEqual(len(records), len(run.candidates))
        self.assertEqual({type(r["knob.STEP"]) for r in records}, {int})
        columns = kernelpro.columns(records)
        self.assertEqual(columns["id"], [c.id for c in run.candidates])
        self.assertIsNone(columns["parent"][0])
        summary, = kernelpro.runs(".")
        self.assertEqual((summary.directory, summary.finished), (run.directory, True))
        self.assertEqual(kernelpro.load(summary), run)

        diagnosis = kernelpro.diagnose(run.candidate(2))
        self.assertIn("candidate 2", diagnosis.subject)
        self.assertIn(diagnosis.bound, ("memory", "latency"))
        self.assertIn("timing.median", [r["metric"] for r in diagnosis.evidence_records()])
        self.assertEqual(len(diagnosis.records()), len(diagnosis.findings))

        again = kernelpro.resume(run, evaluations=3)
        self.assertEqual(again.result().evaluations, 3)

        exported = kernelpro.export(run, output="out")
        self.assertEqual([f.name for f in exported.files], ["kernel.h", "kernel.cpp"])
        self.assertTrue(exported.builds)
        self.assertIsNone(exported.module)
        self.assertIn("kernelpro_axpy", Path("out/kernel.cpp").read_text())

    def test_one_that_is_left_is_stopped_and_can_be_resumed(self):
        with kernelpro.optimize(AXPY, start="right.cpp", target="cpu", run="r", near_ceiling=10,
                                no_record=True) as live:
            next(event for event in live if event.kind == "best")
        self.assertFalse(live.running)
        result = live.result()
        self.assertEqual(result.end, "interrupted")
        done = kernelpro.resume(result, evaluations=result.evaluations + 1).result()
        self.assertEqual(done.evaluations, result.evaluations + 1)

    def test_nothing_achieved_is_a_result(self):
        result = kernelpro.optimize(AXPY, target="cpu", evaluations=2, run="r", near_ceiling=10,
                                    no_record=True, proposer="exchange", exchange_wait=0).result()
        self.assertEqual((result.end, result.faster), ("nothing", False))
        self.assertTrue(result.next)


class Errors(InAFolder):
    def refused(self, kind, call, *words):
        with self.assertRaises(kind) as caught:
            call()
        for word in words:
            self.assertIn(word, str(caught.exception))
        self.assertTrue(caught.exception.next, str(caught.exception))
        return caught.exception

    def test_are_the_programs_own_words(self):
        error = self.refused(kernelpro.InputError,
                             lambda: kernelpro.evaluate("none", "right.cpp"), "there is no task none",
                             "task.toml")
        self.assertEqual((error.status, error.message), (2, "there is no task none"))
        self.assertIsInstance(error, ValueError)
        self.refused(kernelpro.InputError, lambda: kernelpro.evaluate(AXPY, "none.cpp"), "none.cpp")
        self.refused(kernelpro.InputError, lambda: kernelpro.evaluate(AXPY, "right.cpp", frob=1),
                     "--frob")
        self.refused(kernelpro.InputError, lambda: kernelpro.optimize(AXPY, evaluations=0),
                     "leaves no candidate")
        self.refused(kernelpro.InputError, lambda: kernelpro.evaluate(AXPY, "right.cpp",
                                                                      language="cpp"), "--language")
        self.refused(kernelpro.StoreError, lambda: kernelpro.load("none"), "no run")
        self.refused(kernelpro.InputError, kernelpro.diagnose, "nothing to diagnose")

    def test_a_held_run_is_busy(self):
        with kernelpro.optimize(AXPY, start="right.cpp", target="cpu", run="r", near_ceiling=10,
                                no_record=True) as live:
            next(live)
            error = self.refused(kernelpro.BusyError, lambda: kernelpro.resume("r"))
            self.assertEqual(error.status, 4)

    def test_a_program_that_is_not_there(self):
        kept = os.environ["KERNELPRO_PROGRAM"]
        self.addCleanup(os.environ.__setitem__, "KERNELPRO_PROGRAM", kept)
        os.environ["KERNELPRO_PROGRAM"] = "/nowhere/kernelpro"
        self.refused(kernelpro.MachineError, kernelpro.version, "/nowhere/kernelpro")

    @unittest.skipIf(importlib.util.find_spec("pandas"), "pandas is there")
    def test_frames_need_pandas(self):
        self.refused(kernelpro.MachineError, lambda: kernelpro.frame([{"a": 1}]), "pandas")


if __name__ == "__main__":
    unittest.main()
