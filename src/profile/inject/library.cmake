# SPDX-License-Identifier: Apache-2.0
# libkernelpro_trace.so, which the CUDA driver loads into a traced program. It is standalone: no
# room links it, and it links none. Needs CUPTI's headers; CUPTI itself is opened at run time.
set(KERNELPRO_TRACER FALSE)
if(KERNELPRO_CUDA_FOUND)
  find_path(KERNELPRO_CUPTI_INCLUDE cupti.h
    HINTS ${KERNELPRO_CUDA_INCLUDE} ${KERNELPRO_CUDA_INCLUDE}/../extras/CUPTI/include
          $ENV{CUDA_HOME}/extras/CUPTI/include)
  if(KERNELPRO_CUPTI_INCLUDE)
    set(KERNELPRO_TRACER TRUE)
  endif()
endif()

if(KERNELPRO_TRACER)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/profile/inject/*.cc)
  add_library(kernelpro_trace SHARED ${sources})
  kernelpro_unity(kernelpro_trace ${sources})
  add_library(kernelpro_fake_cupti SHARED EXCLUDE_FROM_ALL src/profile/inject/testing/fake_cupti.cc)
  foreach(library kernelpro_trace kernelpro_fake_cupti)
    target_include_directories(${library} PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_include_directories(${library} SYSTEM PRIVATE ${KERNELPRO_CUPTI_INCLUDE}
      ${KERNELPRO_CUDA_INCLUDE})
    set_target_properties(${library} PROPERTIES CXX_VISIBILITY_PRESET hidden
      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
    target_link_libraries(${library} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  endforeach()
  # Our libstdc++ symbols must not override the program's.
  target_link_options(kernelpro_trace PRIVATE
    -Wl,--version-script=${PROJECT_SOURCE_DIR}/src/profile/inject/exports.map)
  add_executable(kernelpro-traced EXCLUDE_FROM_ALL src/profile/inject/testing/traced_program.cc)
  target_include_directories(kernelpro-traced PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(kernelpro-traced PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(kernelpro-traced PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  kernelpro_tests_need(profile/trace kernelpro_trace kernelpro_fake_cupti kernelpro-traced)
endif()
