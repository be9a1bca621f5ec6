# SPDX-License-Identifier: Apache-2.0
# libkernelpro_capture.so, which a Python process loads to capture a PyTorch candidate's calls. It
# brings its own position-independent copies of the few rooms' files that it needs.
if(KERNELPRO_CUDA_FOUND)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/measure/worker/capture/*.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  foreach(file base/error base/files base/hash base/json core/machine/architecture core/plan/captured_call
      core/plan/launch_plan machine/driver/cuda_driver measure/worker/cuda/export
      measure/worker/cuda/memory)
    list(APPEND sources ${PROJECT_SOURCE_DIR}/src/${file}.cc)
  endforeach()
  add_library(kernelpro_capture SHARED ${sources})
  target_include_directories(kernelpro_capture PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_include_directories(kernelpro_capture SYSTEM PRIVATE ${KERNELPRO_EXPECTED_INCLUDE})
  target_link_libraries(kernelpro_capture PRIVATE kernelpro_cuda_api nlohmann_json::nlohmann_json
    xxhash::xxhash Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(kernelpro_capture PROPERTIES CXX_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin UNITY_BUILD ${KERNELPRO_UNITY}
    UNITY_BUILD_MODE BATCH UNITY_BUILD_BATCH_SIZE 0)  # their groups are those of their rooms
  if(KERNELPRO_UNITY)
    target_compile_options(kernelpro_capture PRIVATE $<$<CONFIG:Release>:${KERNELPRO_COLD}>)
    kernelpro_own_constants(kernelpro_capture ${sources})
  endif()
  # Our libstdc++ symbols must not override PyTorch's.
  target_link_options(kernelpro_capture PRIVATE LINKER:--no-undefined
    -Wl,--version-script=${PROJECT_SOURCE_DIR}/src/measure/worker/capture/exports.map)
endif()
