# SPDX-License-Identifier: Apache-2.0
kernelpro_embed(kernelpro_worker judge_kernels src/worker/cuda/judge.cu)
