// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// Thrust on the stream that it is given: kernels, grids and attributes are the library's choice.
#include <thrust/execution_policy.h>
#include <thrust/transform.h>

#include "task.h"

struct Axpy {
  __device__ float operator()(float x, float z) const { return 2 * x + z; }
};
extern "C" void launch(const Args& args, cudaStream_t stream) {
  thrust::transform(thrust::cuda::par_nosync.on(stream), args.x, args.x + N, args.z, args.y,
                    Axpy{});
}
