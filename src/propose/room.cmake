# SPDX-License-Identifier: Apache-2.0
foreach(prompt attention coder compile convolutions cuda exchange fixer gpu groups hopper library
        machine planner products rules streams task)
  kernelpro_embed(kernelpro_propose prompt_${prompt} prompts/${prompt}.md)
endforeach()
# The one place here that computes: matrices, for each proposal of the tuner.
set_source_files_properties(src/propose/surrogate.cc PROPERTIES
  COMPILE_OPTIONS $<$<CONFIG:Release>:-O2> UNITY_GROUP surrogate)
