# SPDX-License-Identifier: Apache-2.0
# Matrix arithmetic for every proposal: the only file here worth optimizing.
set_source_files_properties(${dir}/surrogate.cc PROPERTIES
  COMPILE_OPTIONS $<$<CONFIG:Release>:-O2> UNITY_GROUP surrogate)
