# SPDX-License-Identifier: Apache-2.0
"""How expected results are computed, where no GPU is needed to decide it."""

import math
import unittest

from kernelpro_torch.compute import Ways


def taken(ms_with, ms_without, calls=8, startup=0):
    """Which way each of some calls takes, True for cuDNN; the first of it lasts `startup` longer."""
    ways, seen = Ways(), []
    for _ in range(calls):
        with_it = ways.choose("float64")
        seen.append(with_it)
        ways.note("float64", with_it,
                  ms_with + (startup if seen.count(True) == 1 else 0) if with_it else ms_without)
    return seen


class WaysToCompute(unittest.TestCase):
    def test_the_faster_one_stays(self):
        self.assertEqual(taken(9000, 300), [True, False, True] + 5 * [False])
        self.assertEqual(taken(300, 9000), [True, False] + 6 * [True])

    def test_a_quick_one_is_not_compared(self):
        self.assertEqual(taken(20, 1), 8 * [True])

    def test_loading_libraries_does_not_decide(self):
        self.assertEqual(taken(200, 400, startup=3000), [True, False] + 6 * [True])

    def test_what_cannot_be_computed_is_not_tried_again(self):
        self.assertEqual(taken(9000, math.inf), [True, False] + 6 * [True])

    def test_each_kind_decides_for_itself(self):
        ways = Ways()
        ways.note("float64", True, 9000)
        self.assertFalse(ways.choose("float64"))
        self.assertTrue(ways.choose("rounded"))


if __name__ == "__main__":
    unittest.main()
