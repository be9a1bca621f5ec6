# SPDX-License-Identifier: Apache-2.0
kernelpro_embed(${library} suite_degenerate src/suite/degenerate.csv)
# The tests run the real binary.
kernelpro_tests_need(suite kernelpro)
