# SPDX-License-Identifier: Apache-2.0
# The toolkit's own occupancy calculator, a header, is what ours is compared with.
if(KERNELPRO_CUDA_FOUND)
  set_source_files_properties(${dir}/occupancy_test.cc PROPERTIES
    COMPILE_OPTIONS "-isystem;${KERNELPRO_CUDA_INCLUDE}")
endif()
