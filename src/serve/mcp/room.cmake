# SPDX-License-Identifier: Apache-2.0
# The tests are clients of the real program.
if(KERNELPRO_TESTS)
  cmake_language(DEFER CALL add_dependencies test_serve_mcp kernelpro)
endif()
