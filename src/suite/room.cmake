# SPDX-License-Identifier: Apache-2.0
kernelpro_embed(${library} suite_degenerate src/suite/degenerate.csv)
# The tests run the real binary.
if(KERNELPRO_TESTS)
  cmake_language(DEFER CALL add_dependencies test_suite kernelpro kernelpro-worker)
endif()
