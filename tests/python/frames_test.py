# SPDX-License-Identifier: Apache-2.0
"""Records as data frames, with pandas."""

import os
import tempfile
import unittest

import kernelpro
from api_test import AXPY, RIGHT


class Frames(unittest.TestCase):
    def test_of_a_run(self):
        with tempfile.TemporaryDirectory() as folder:
            start = os.path.join(folder, "right.cpp")
            with open(start, "w") as file:
                file.write(RIGHT)
            result = kernelpro.optimize(AXPY, start=start, target="cpu", evaluations=2,
                                        run=os.path.join(folder, "r"), near_ceiling=10,
                                        no_record=True).result()
            frame = kernelpro.load(result).frame()
        self.assertEqual(list(frame["id"]), [1, 2])
        self.assertEqual(frame["time_us"].dtype.kind, "f")
        self.assertEqual(frame["knob.STEP"].dtype.kind, "i")
        self.assertTrue((frame["outcome"] == "correct").all())

    def test_of_rows_with_other_columns(self):
        frame = kernelpro.frame([{"a": 1}, {"b": "x"}])
        self.assertEqual(list(frame.columns), ["a", "b"])
        self.assertTrue(frame["a"].isna()[1])


if __name__ == "__main__":
    unittest.main()
