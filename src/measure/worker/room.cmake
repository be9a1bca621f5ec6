# SPDX-License-Identifier: Apache-2.0
kernelpro_embed(${library} judge_kernels src/measure/worker/cuda/judge.cu)
kernelpro_embed(${library} gpu_state_kernels src/measure/worker/cuda/gpu_state.cu)

# The tests' CUDA driver (testing/fake_driver.h). It has the real one's soname, and so its own
# folder, which only the test program's search path names: the old kind, which comes before
# LD_LIBRARY_PATH, where many machines name the real one's folder.
if(KERNELPRO_TESTS AND KERNELPRO_CUDA_FOUND)
  add_library(kernelpro_fake_cublas SHARED EXCLUDE_FROM_ALL ${dir}/testing/fake_cublas.cc)
  set_target_properties(kernelpro_fake_cublas PROPERTIES OUTPUT_NAME cublas SOVERSION 13)
  add_library(kernelpro_fake_driver SHARED EXCLUDE_FROM_ALL ${dir}/testing/fake_driver.cc
    ${dir}/testing/fake_memory.cc ${dir}/testing/fake_graphs.cc ${dir}/testing/fake_streams.cc ${dir}/testing/judge_on_host.cc)
  set_target_properties(kernelpro_fake_driver PROPERTIES OUTPUT_NAME cuda SOVERSION 1)
  set_target_properties(kernelpro_fake_driver kernelpro_fake_cublas PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake_driver CXX_VISIBILITY_PRESET hidden
    UNITY_BUILD OFF)
  target_include_directories(kernelpro_fake_driver PRIVATE ${PROJECT_SOURCE_DIR}/src
    ${PROJECT_SOURCE_DIR}/src/core/device)
  target_link_options(kernelpro_fake_driver PRIVATE "LINKER:--no-as-needed")
  target_link_libraries(kernelpro_fake_driver PRIVATE kernelpro_fake_cublas PUBLIC
    kernelpro_cuda_api)
  kernelpro_unity(kernelpro_fake_driver ${dir}/testing/fake_driver.cc
    ${dir}/testing/fake_memory.cc ${dir}/testing/fake_graphs.cc ${dir}/testing/fake_streams.cc)
  # Device code: its warnings are NVRTC's business.
  set_source_files_properties(${dir}/testing/judge_on_host.cc PROPERTIES COMPILE_OPTIONS "-w;-O2")
  # And the tests' CUPTI (testing/fake_sampling.h), with the real one's soname.
  add_library(kernelpro_fake_sampling SHARED EXCLUDE_FROM_ALL ${dir}/testing/fake_sampling.cc)
  set_target_properties(kernelpro_fake_sampling PROPERTIES OUTPUT_NAME cupti SOVERSION 13
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake_driver CXX_VISIBILITY_PRESET hidden
    UNITY_BUILD OFF)
  target_include_directories(kernelpro_fake_sampling PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(kernelpro_fake_sampling PUBLIC kernelpro_fake_driver)
  cmake_language(DEFER CALL target_link_libraries test_measure_worker PRIVATE
    kernelpro_fake_driver kernelpro_fake_sampling)
  # The worker program over it, for the tests of measure/cuda.
  add_executable(fake_worker EXCLUDE_FROM_ALL ${dir}/testing/fake_worker.cc)
  target_link_libraries(fake_worker PRIVATE kernelpro_measure_worker kernelpro_fake_driver
    kernelpro_fake_sampling)
  target_link_options(fake_worker PRIVATE "LINKER:--no-as-needed,--disable-new-dtags")
  cmake_language(DEFER CALL target_link_options test_measure_worker PRIVATE
    "LINKER:--disable-new-dtags")
  set_target_properties(fake_worker PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fake_driver)
  kernelpro_tests_need(measure/cuda fake_worker kernelpro_capture)
endif()
