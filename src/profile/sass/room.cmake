# SPDX-License-Identifier: Apache-2.0
# The test compares our occupancy calculator with the toolkit's, which is a header.
if(KERNELPRO_CUDA_FOUND)
  set_source_files_properties(${dir}/occupancy_test.cc PROPERTIES
    COMPILE_OPTIONS "-isystem;${KERNELPRO_CUDA_INCLUDE}")
endif()
