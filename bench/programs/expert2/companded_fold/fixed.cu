// SPDX-License-Identifier: Apache-2.0
// Matched filtering of companded acoustic records.
// Records are stored as 8-bit mu-law codes. Each is folded at the ping period (2048
// samples) and correlated with four ping templates. Warps are specialised: some expand
// codes into a shared buffer, the others correlate the buffer filled the turn before.
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
    std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); std::exit(2); } } while (0)

constexpr int PERIOD = 2048;
constexpr int PINGS = 128;                    // periods per record
constexpr int RECORDS = 1056;
constexpr int WARPS = 8;
constexpr int THREADS = WARPS * 32;
constexpr int EXPAND_WARPS = 4;
constexpr int FILTER_WARPS = WARPS - EXPAND_WARPS;
constexpr int WORDS = PERIOD / 4;             // packed words per period
constexpr int WORDS_EACH = WORDS / (EXPAND_WARPS * 32);
constexpr int SMEM_BYTES = PERIOD * sizeof(float4) + 2 * PERIOD * sizeof(float);

struct FrontEnd { float c1, c3, c5; };        // odd polynomial that linearises the hydrophone

__host__ __device__ inline unsigned mix(unsigned x) {
    x ^= x >> 16; x *= 0x7feb352du;
    x ^= x >> 15; x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

// G.711 mu-law code to pressure.
__host__ __device__ inline float expand(unsigned code, const FrontEnd& fe) {
    code = ~code & 0xffu;
    const int mag = ((((int)(code & 15u) << 3) + 0x84) << ((code >> 4) & 7u)) - 0x84;
    const float v = (float)((code & 0x80u) ? -mag : mag) * (1.0f / 32768.0f);
    const float v2 = v * v;
    return v * (fe.c1 + v2 * (fe.c3 + v2 * fe.c5));
}

__global__ void fill_records(unsigned* words, size_t n) {
    const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) words[i] = mix((unsigned)i * 2654435761u + 5u);
}

__device__ __forceinline__ void fetch_codes(unsigned (&w)[WORDS_EACH], const unsigned* ping, int t) {
#pragma unroll
    for (int i = 0; i < WORDS_EACH; ++i) w[i] = __ldcs(ping + i * EXPAND_WARPS * 32 + t);
}

__device__ __forceinline__ void expand_codes(float* wave, const unsigned (&w)[WORDS_EACH], int t, const FrontEnd& fe) {
#pragma unroll
    for (int i = 0; i < WORDS_EACH; ++i) {
        float4 v;
        v.x = expand(w[i], fe);
        v.y = expand(w[i] >> 8, fe);
        v.z = expand(w[i] >> 16, fe);
        v.w = expand(w[i] >> 24, fe);
        reinterpret_cast<float4*>(wave)[i * EXPAND_WARPS * 32 + t] = v;
    }
}

__device__ __forceinline__ void correlate(float4& acc, const float* wave, const float4* tmpl, int t) {
#pragma unroll 4
    for (int p = t; p < PERIOD; p += FILTER_WARPS * 32) {
        const float s = wave[p];
        const float4 h = tmpl[p];
        acc.x = fmaf(s, h.x, acc.x);
        acc.y = fmaf(s, h.y, acc.y);
        acc.z = fmaf(s, h.z, acc.z);
        acc.w = fmaf(s, h.w, acc.w);
    }
}

__global__ void __launch_bounds__(THREADS, 2)
match_records(const unsigned* __restrict__ codes, const float4* __restrict__ templates, float* __restrict__ scores, FrontEnd fe) {
    extern __shared__ __align__(16) unsigned char smem[];
    float4* tmpl = reinterpret_cast<float4*>(smem);
    float* waves = reinterpret_cast<float*>(tmpl + PERIOD);
    __shared__ float total[4];
    const bool expanding = threadIdx.x < EXPAND_WARPS * 32;
    const int t = expanding ? threadIdx.x : threadIdx.x - EXPAND_WARPS * 32;
    for (int p = threadIdx.x; p < PERIOD; p += THREADS) tmpl[p] = templates[p];

    for (int rec = blockIdx.x; rec < RECORDS; rec += gridDim.x) {
        const unsigned* record = codes + (size_t)rec * PINGS * WORDS;
        unsigned now[WORDS_EACH], next[WORDS_EACH];
        float4 acc = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (threadIdx.x < 4) total[threadIdx.x] = 0.0f;
        if (expanding) fetch_codes(now, record, t);

        for (int ping = 0; ping <= PINGS; ++ping) {
            if (expanding) {
                if (ping < PINGS) {
                    if (ping + 1 < PINGS) fetch_codes(next, record + (ping + 1) * WORDS, t);
                    expand_codes(waves + (ping & 1) * PERIOD, now, t, fe);
#pragma unroll
                    for (int i = 0; i < WORDS_EACH; ++i) now[i] = next[i];
                }
            } else if (ping > 0) {
                correlate(acc, waves + ((ping - 1) & 1) * PERIOD, tmpl, t);
            }
            __syncthreads();
        }
        if (!expanding) {
#pragma unroll
            for (int d = 16; d > 0; d >>= 1) {
                acc.x += __shfl_down_sync(0xffffffffu, acc.x, d);
                acc.y += __shfl_down_sync(0xffffffffu, acc.y, d);
                acc.z += __shfl_down_sync(0xffffffffu, acc.z, d);
                acc.w += __shfl_down_sync(0xffffffffu, acc.w, d);
            }
            if ((t & 31) == 0) {
                atomicAdd(&total[0], acc.x); atomicAdd(&total[1], acc.y);
                atomicAdd(&total[2], acc.z); atomicAdd(&total[3], acc.w);
            }
        }
        __syncthreads();
        if (threadIdx.x < 4) scores[rec * 4 + threadIdx.x] = total[threadIdx.x];
        __syncthreads();
    }
}

int main() {
    const int iterations = 40;
    const FrontEnd fe = { 1.02f, -0.03f, 0.004f };
    int dev = 0, sms = 0;
    CK(cudaGetDevice(&dev));
    CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, dev));

    std::vector<float4> templates(PERIOD);
    for (int p = 0; p < PERIOD; ++p) {
        auto u = [&](unsigned k) { return (mix(4 * p + k + 99u) >> 8) * (1.0f / 8388608.0f) - 1.0f; };
        templates[p] = make_float4(u(0), u(1), u(2), u(3));
    }
    const size_t words = (size_t)RECORDS * PINGS * WORDS;
    unsigned* codes; float4* d_tmpl; float* scores;
    CK(cudaMalloc(&codes, words * sizeof(unsigned)));
    CK(cudaMalloc(&d_tmpl, PERIOD * sizeof(float4)));
    CK(cudaMalloc(&scores, RECORDS * 4 * sizeof(float)));
    CK(cudaMemcpy(d_tmpl, templates.data(), PERIOD * sizeof(float4), cudaMemcpyHostToDevice));
    fill_records<<<(unsigned)((words + 255) / 256), 256>>>(codes, words);
    CK(cudaGetLastError());
    CK(cudaFuncSetAttribute(match_records, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM_BYTES));

    match_records<<<sms * 2, THREADS, SMEM_BYTES>>>(codes, d_tmpl, scores, fe);
    CK(cudaDeviceSynchronize());
    cudaEvent_t t0, t1;
    CK(cudaEventCreate(&t0)); CK(cudaEventCreate(&t1));
    CK(cudaEventRecord(t0));
    for (int i = 0; i < iterations; ++i) match_records<<<sms * 2, THREADS, SMEM_BYTES>>>(codes, d_tmpl, scores, fe);
    CK(cudaEventRecord(t1));
    CK(cudaEventSynchronize(t1));
    CK(cudaGetLastError());
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, t0, t1));
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iterations);

    std::vector<float> got(RECORDS * 4);
    CK(cudaMemcpy(got.data(), scores, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    int bad = 0;
    for (int rec = 0; rec < RECORDS; rec += 67) {
        double want[4] = {}, size[4] = {};
        for (int i = 0; i < PINGS * WORDS; ++i) {
            const unsigned w = mix((unsigned)((size_t)rec * PINGS * WORDS + i) * 2654435761u + 5u);
            for (int b = 0; b < 4; ++b) {
                const float4 h = templates[(i * 4 + b) % PERIOD];
                const double s = expand(w >> (8 * b), fe), hh[4] = { h.x, h.y, h.z, h.w };
                for (int m = 0; m < 4; ++m) { want[m] += s * hh[m]; size[m] += std::fabs(s * hh[m]); }
            }
        }
        for (int m = 0; m < 4; ++m)
            if (!(std::fabs(got[rec * 4 + m] - want[m]) <= 1e-4 * size[m])) ++bad;
    }
    std::printf("scores out of tolerance: %d\n", bad);
    return bad ? 1 : 0;
}
