// SPDX-License-Identifier: Apache-2.0
// Telephony: expands G.711 mu-law speech to 16-bit linear PCM with a volume per call.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CU_OR_DIE(stmt)                                                                 \
    do {                                                                                \
        cudaError_t err = (stmt);                                                       \
        if (err != cudaSuccess) {                                                       \
            std::fprintf(stderr, "%s: %s\n", #stmt, cudaGetErrorString(err));           \
            std::exit(2);                                                               \
        }                                                                               \
    } while (0)

constexpr int kCalls = 1024;
constexpr int kCallSamples = 1 << 16;   // 8.2 s at 8 kHz
constexpr int kThreads = 256;

__device__ int16_t expand[256];

__host__ __device__ inline uint8_t speech(uint32_t i) {
    i ^= i >> 16;
    i *= 0x45d9f3bu;
    i ^= i >> 16;
    return (uint8_t)(i >> 3);
}

static int16_t mulaw_to_linear(uint8_t code) {
    code = ~code;
    int t = ((code & 0x0f) << 3) + 0x84;
    t <<= (code & 0x70) >> 4;
    return (int16_t)((code & 0x80) ? (0x84 - t) : (t - 0x84));
}

__global__ void fill(uint8_t* coded) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    coded[i] = speech(i);
}

__device__ __forceinline__ uint32_t scale(int sample, int volume) {
    return (uint32_t)((sample * volume) >> 8) & 0xffffu;   // volume <= 256
}

__global__ void __launch_bounds__(kThreads)
decode(const uint2* __restrict__ coded, const int* __restrict__ volume, uint4* __restrict__ pcm) {
    __shared__ int16_t table[256];
    table[threadIdx.x] = expand[threadIdx.x];
    __syncthreads();
    const int call = blockIdx.y;
    const int gain = volume[call];
    const size_t base = (size_t)call * (kCallSamples / 8);
    for (int i = blockIdx.x * kThreads + threadIdx.x; i < kCallSamples / 8; i += gridDim.x * kThreads) {
        const uint2 c = coded[base + i];
        uint32_t words[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const uint32_t pair = (k < 2 ? c.x : c.y) >> (16 * (k & 1));
            words[k] = scale(table[pair & 0xffu], gain) | scale(table[pair >> 8 & 0xffu], gain) << 16;
        }
        pcm[base + i] = make_uint4(words[0], words[1], words[2], words[3]);
    }
}

int main() {
    const size_t samples = (size_t)kCalls * kCallSamples;
    int16_t table[256];
    for (int c = 0; c < 256; ++c) table[c] = mulaw_to_linear((uint8_t)c);
    CU_OR_DIE(cudaMemcpyToSymbol(expand, table, sizeof(table)));
    std::vector<int> volume(kCalls);
    for (int c = 0; c < kCalls; ++c) volume[c] = 64 + (c * 37) % 193;

    uint8_t* d_coded;
    int* d_volume;
    int16_t* d_pcm;
    CU_OR_DIE(cudaMalloc(&d_coded, samples));
    CU_OR_DIE(cudaMalloc(&d_volume, kCalls * sizeof(int)));
    CU_OR_DIE(cudaMalloc(&d_pcm, samples * sizeof(int16_t)));
    CU_OR_DIE(cudaMemcpy(d_volume, volume.data(), kCalls * sizeof(int), cudaMemcpyHostToDevice));
    fill<<<(unsigned)(samples / 256), 256>>>(d_coded);

    const dim3 grid(4, kCalls);
    cudaEvent_t start, stop;
    CU_OR_DIE(cudaEventCreate(&start));
    CU_OR_DIE(cudaEventCreate(&stop));
    const int warm = 5, rounds = 200;
    for (int i = 0; i < warm + rounds; ++i) {
        if (i == warm) CU_OR_DIE(cudaEventRecord(start));
        decode<<<grid, kThreads>>>((const uint2*)d_coded, d_volume, (uint4*)d_pcm);
    }
    CU_OR_DIE(cudaEventRecord(stop));
    CU_OR_DIE(cudaEventSynchronize(stop));
    CU_OR_DIE(cudaGetLastError());
    float ms = 0.f;
    CU_OR_DIE(cudaEventElapsedTime(&ms, start, stop));

    std::vector<int16_t> pcm(samples);
    CU_OR_DIE(cudaMemcpy(pcm.data(), d_pcm, samples * sizeof(int16_t), cudaMemcpyDeviceToHost));
    long long wrong = 0;
    for (size_t i = 0; i < samples; i += 17) {
        const int want = (mulaw_to_linear(speech((uint32_t)i)) * volume[i / kCallSamples]) >> 8;
        if (pcm[i] != want) ++wrong;
    }
    std::printf("wrong samples: %lld\n", wrong);
    std::printf("us_per_iteration: %.3f\n", ms * 1e3 / rounds);
    return wrong ? 1 : 0;
}
