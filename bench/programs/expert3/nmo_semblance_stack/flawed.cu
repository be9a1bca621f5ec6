// SPDX-License-Identifier: Apache-2.0. Weighted stack and semblance energies of a trace gather.  The gather is far larger
// than the L2 cache, so each block streams one strip of samples down all traces
// through a ring of asynchronous copies.  A thread reads back only the 16 bytes that
// it copied itself, so that the ring needs no barrier.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    printf("%s at line %d\n", cudaGetErrorString(e_), __LINE__); exit(1); } } while (0)

constexpr int THREADS = 320;
constexpr int STRIP = THREADS * 4;                 // samples per block
constexpr int BLOCKS = 264;                        // two to each of 132 SMs
constexpr size_t SAMPLES = (size_t)STRIP * BLOCKS;
constexpr int TRACES = 256;
constexpr int STAGES = 8;

__global__ void make_gather(float* g)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= SAMPLES * TRACES) return;
    unsigned s = (unsigned)(i % SAMPLES), h = (unsigned)i * 2654435761u;
    h ^= h >> 15; h *= 2246822519u; h ^= h >> 13;
    g[i] = __sinf(0.05f * (s & 1023)) + ((h & 0xffff) / 65535.0f - 0.5f);
}

__device__ __forceinline__ void copy16(float4* dst, const float* src)
{
    unsigned d = (unsigned)__cvta_generic_to_shared(dst);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(d), "l"(src) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ __forceinline__ void wait_groups()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

__global__ void __launch_bounds__(THREADS, 2) stack(const float* __restrict__ gather,
                                                    const float* __restrict__ weight,
                                                    float4* __restrict__ sum_out,
                                                    float4* __restrict__ energy_out)
{
    __shared__ float4 ring[STAGES][THREADS];
    const int t = threadIdx.x;
    const float* src = gather + (size_t)blockIdx.x * STRIP + t * 4;

#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        copy16(&ring[s][t], src + s * SAMPLES);
        commit();
    }
    src += (STAGES - 1) * SAMPLES;

    float4 sum = make_float4(0, 0, 0, 0), en = make_float4(0, 0, 0, 0);
    for (int tr = 0; tr < TRACES; ++tr) {
        wait_groups<0>();
        const float4 v = ring[tr % STAGES][t];
        if (tr + STAGES - 1 < TRACES) copy16(&ring[(tr + STAGES - 1) % STAGES][t], src);
        commit();
        src += SAMPLES;
        const float w = __ldg(weight + tr);
        sum.x = fmaf(w, v.x, sum.x); en.x = fmaf(v.x, v.x, en.x);
        sum.y = fmaf(w, v.y, sum.y); en.y = fmaf(v.y, v.y, en.y);
        sum.z = fmaf(w, v.z, sum.z); en.z = fmaf(v.z, v.z, en.z);
        sum.w = fmaf(w, v.w, sum.w); en.w = fmaf(v.w, v.w, en.w);
    }
    const size_t o = (size_t)blockIdx.x * THREADS + t;
    __stcs(sum_out + o, sum);
    __stcs(energy_out + o, en);
}

int main()
{
    float *g, *w, *sum, *en;
    CK(cudaMalloc(&g, SAMPLES * TRACES * sizeof(float)));
    CK(cudaMalloc(&w, TRACES * sizeof(float)));
    CK(cudaMalloc(&sum, SAMPLES * sizeof(float)));
    CK(cudaMalloc(&en, SAMPLES * sizeof(float)));
    std::vector<float> hw(TRACES);
    for (int i = 0; i < TRACES; ++i) hw[i] = (float)(std::exp(-i / 180.0) / 40.0);
    CK(cudaMemcpy(w, hw.data(), TRACES * sizeof(float), cudaMemcpyHostToDevice));
    make_gather<<<(unsigned)(SAMPLES * TRACES / 256), 256>>>(g);

    for (int i = 0; i < 2; ++i)
        stack<<<BLOCKS, THREADS>>>(g, w, (float4*)sum, (float4*)en);
    CK(cudaDeviceSynchronize());
    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0));
    CK(cudaEventCreate(&t1));
    const int iters = 40;
    CK(cudaEventRecord(t0));
    for (int i = 0; i < iters; ++i)
        stack<<<BLOCKS, THREADS>>>(g, w, (float4*)sum, (float4*)en);
    CK(cudaEventRecord(t1));
    CK(cudaEventSynchronize(t1));
    CK(cudaGetLastError());
    float ms;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    printf("us_per_iteration: %.1f\n", ms * 1000.0f / iters);

    // Runs of 64 samples spread over the gather, against the CPU.
    std::vector<float> hs(SAMPLES), he(SAMPLES), col(64 * TRACES);
    CK(cudaMemcpy(hs.data(), sum, SAMPLES * sizeof(float), cudaMemcpyDeviceToHost));
    CK(cudaMemcpy(he.data(), en, SAMPLES * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t first = 0; first + 64 <= SAMPLES; first += 30011) {
        CK(cudaMemcpy2D(col.data(), 64 * sizeof(float), g + first, SAMPLES * sizeof(float),
                        64 * sizeof(float), TRACES, cudaMemcpyDeviceToHost));
        for (int k = 0; k < 64; ++k) {
            double s = 0, e = 0;
            for (int tr = 0; tr < TRACES; ++tr) {
                double v = col[tr * 64 + k];
                s += hw[tr] * v;
                e += v * v;
            }
            if (std::fabs(s - hs[first + k]) > 1e-3 || std::fabs(e - he[first + k]) > 1e-3 * e) {
                printf("mismatch at sample %zu\n", first + k);
                return 1;
            }
        }
    }
    return 0;
}
