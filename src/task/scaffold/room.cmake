# SPDX-License-Identifier: Apache-2.0
kernelpro_embed(${library} torch_stand_in src/task/scaffold/text/torch_stand_in.cuh)
