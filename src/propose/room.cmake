# SPDX-License-Identifier: Apache-2.0
foreach(prompt coder cuda exchange fixer library planner rules task)
  kernelpro_embed(kernelpro_propose prompt_${prompt} prompts/${prompt}.md)
endforeach()
