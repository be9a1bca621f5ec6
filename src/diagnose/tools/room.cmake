# SPDX-License-Identifier: Apache-2.0
# Forty small tools include the same headers: in a quick build they share a precompiled one.
if(KERNELPRO_UNITY)
  target_precompile_headers(${library} PRIVATE
    <algorithm> <cmath> "${CMAKE_CURRENT_SOURCE_DIR}/src/base/text.h"
    "${CMAKE_CURRENT_SOURCE_DIR}/src/diagnose/tools/tool.h")
endif()
