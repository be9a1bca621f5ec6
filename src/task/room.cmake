# SPDX-License-Identifier: Apache-2.0
kernelpro_embed(kernelpro_task torch_stand_in src/task/text/torch_stand_in.cuh)
