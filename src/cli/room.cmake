# SPDX-License-Identifier: Apache-2.0
# The tests run the real binary.
if(KERNELPRO_TESTS)
  cmake_language(DEFER CALL add_dependencies test_cli kernelpro kernelpro-worker)
endif()
