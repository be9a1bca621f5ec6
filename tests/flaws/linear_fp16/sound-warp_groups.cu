// SPDX-License-Identifier: Apache-2.0
#include <cuda_pipeline.h>

#include "task.h"

// 128 x 256 results per block; each of two warp groups multiplies 64 rows of x by the tile of w,
// both straight from shared memory (wgmma), which is filled three steps ahead. Rows of 64 values
// are 128 bytes, their 16-byte pieces swizzled as the matrix unit expects.
constexpr int kTileM = 128, kTileN = 256, kDepth = 64, kStages = 4;
constexpr int kStage = (kTileM + kTileN) * kDepth * 2;  // bytes
static_assert(M % kTileM == 0 && N % kTileN == 0 && K % kDepth == 0);

// A thread brings every 32nd row's piece of 16 bytes.
template <int kRows>
__device__ inline void fetch(unsigned char* to, const __half* from) {
#pragma unroll
  for (int k = 0; k < kRows / 32; ++k) {
    __pipeline_memcpy_async(to + k * 32 * 128, from + k * 32 * K, 16);
  }
}

// A matrix whose rows are 128 swizzled bytes, eight of them 1024 bytes.
__device__ inline unsigned long long descriptor(const void* at) {
  const unsigned long long address = __cvta_generic_to_shared(at);
  return (address & 0x3ffff) >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

__device__ inline void multiply(float (&d)[128], unsigned long long a, unsigned long long b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, "
      "%127}, "
      "%128, %129, 1, 1, 1, 0, 0;\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]),
        "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),
        "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),
        "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]),
        "+f"(d[63]), "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]),
        "+f"(d[70]), "+f"(d[71]), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]),
        "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]),
        "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]),
        "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), "+f"(d[97]),
        "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]),
        "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]),
        "+f"(d[110]), "+f"(d[111]), "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]),
        "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), "+f"(d[120]), "+f"(d[121]),
        "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
      : "l"(a), "l"(b));
}

__global__ void __launch_bounds__(256)
    linear(const __half* __restrict__ x, const __half* __restrict__ w, __half* __restrict__ y) {
  extern __shared__ __align__(1024) unsigned char memory[];
  const int group = threadIdx.x / 128, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const int row0 = blockIdx.y * kTileM, column0 = blockIdx.x * kTileN;
  const int my_row = threadIdx.x / 8, my_piece = threadIdx.x % 8;
  unsigned char* mine = memory + my_row * 128 + (my_piece ^ (my_row % 8)) * 16;
  x += (row0 + my_row) * K + my_piece * 8;
  w += (column0 + my_row) * K + my_piece * 8;
  float d[128] = {};
  constexpr int kSteps = K / kDepth;
  const auto load = [&](int s) {
    unsigned char* to = mine + s % kStages * kStage;
    fetch<kTileM>(to, x + s * kDepth);
    fetch<kTileN>(to + kTileM * 128, w + s * kDepth);
  };
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < kSteps) load(s);
    __pipeline_commit();
  }
#pragma unroll 1
  for (int s = 0; s < kSteps; ++s) {
    __pipeline_wait_prior(kStages - 2);
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
    __syncthreads();  // this step's tiles are there, and the last step's are read
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
    const unsigned char* tiles = memory + s % kStages * kStage;
    const unsigned long long a = descriptor(tiles + group * 64 * 128);
    const unsigned long long b = descriptor(tiles + kTileM * 128);
#pragma unroll
    for (int k = 0; k < kDepth / 16; ++k) multiply(d, a + 2 * k, b + 2 * k);
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
    if (s + kStages - 1 < kSteps) load(s + kStages - 1);
    __pipeline_commit();
  }
  asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
  const int row = row0 + group * 64 + warp * 16 + lane / 4;
#pragma unroll
  for (int j = 0; j < kTileN / 8; ++j) {
    __half* out = y + row * N + column0 + 8 * j + lane % 4 * 2;
    *reinterpret_cast<__half2*>(out) = __floats2half2_rn(d[4 * j], d[4 * j + 1]);
    *reinterpret_cast<__half2*>(out + 8 * N) = __floats2half2_rn(d[4 * j + 2], d[4 * j + 3]);
  }
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  cudaFuncSetAttribute(linear, cudaFuncAttributeMaxDynamicSharedMemorySize, kStages * kStage);
  linear<<<dim3(N / kTileN, M / kTileM), 256, kStages * kStage, stream>>>(args.x, args.w, args.y);
}
