# SPDX-License-Identifier: Apache-2.0
foreach(prompt attention coder compile convolutions cuda exchange fixer gpu groups hopper library
        machine planner products rules streams task)
  kernelpro_embed(${library} prompt_${prompt} prompts/${prompt}.md)
endforeach()
