# SPDX-License-Identifier: Apache-2.0
kernelpro_embed(${library} judge_kernels src/measure/worker/cuda/judge.cu)
