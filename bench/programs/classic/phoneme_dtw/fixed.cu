// SPDX-License-Identifier: Apache-2.0
// Dynamic time warping of many short pitch contours against a set of spoken-phoneme templates.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

namespace {

void must(cudaError_t status, const char* what) {
    if (status == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
    std::exit(2);
}

constexpr int kFrames = 64;        // frames of a contour
constexpr int kMaxTemplate = 32;   // frames of the longest template
constexpr int kTemplates = 8;
constexpr int kThreads = 128;
constexpr int kRow = kMaxTemplate + 1;
constexpr float kFar = 1e30f;

__constant__ float c_template[kTemplates][kMaxTemplate];
__constant__ int c_length[kTemplates];

// contours are stored frame by frame: contours[frame * count + contour]
__global__ void __launch_bounds__(kThreads)
warp_distance(const float* __restrict__ contours, float* __restrict__ distance, int count) {
    __shared__ float rows[kThreads * kRow];
    const int contour = blockIdx.x * kThreads + threadIdx.x;
    const int which = blockIdx.y;
    const int length = c_length[which];
    float* row = rows + threadIdx.x * kRow;
    for (int j = 0; j < length; ++j) row[j] = kFar;
    float corner = 0.f;
    for (int t = 0; t < kFrames; ++t) {
        const float x = contours[(size_t)t * count + contour];
        float diagonal = corner, left = kFar;
        for (int j = 0; j < length; ++j) {
            const float up = row[j];
            left = fabsf(x - c_template[which][j]) + fminf(fminf(up, left), diagonal);
            diagonal = up;
            row[j] = left;
        }
        corner = kFar;
    }
    distance[(size_t)which * count + contour] = row[length - 1];
}

__global__ void nearest(const float* __restrict__ distance, int* __restrict__ label, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    int best = 0;
    float least = distance[i];
    for (int k = 1; k < kTemplates; ++k) {
        const float d = distance[(size_t)k * count + i];
        if (d < least) { least = d; best = k; }
    }
    label[i] = best;
}

float host_dtw(const std::vector<float>& contours, int count, int contour, const float* shape, int length) {
    std::vector<float> row(length, kFar);
    for (int t = 0; t < kFrames; ++t) {
        const float x = contours[(size_t)t * count + contour];
        float diagonal = t ? kFar : 0.f, left = kFar;
        for (int j = 0; j < length; ++j) {
            const float up = row[j];
            left = std::fabs(x - shape[j]) + std::min(std::min(up, left), diagonal);
            diagonal = up;
            row[j] = left;
        }
    }
    return row[length - 1];
}

}  // namespace

int main() {
    const int count = 32768;
    std::vector<float> contours((size_t)count * kFrames);
    uint64_t s = 88172645463325252ull;
    for (auto& v : contours) {
        s ^= s << 13; s ^= s >> 7; s ^= s << 17;
        v = (float)(s >> 40) * (1.f / 16777216.f);
    }
    float shapes[kTemplates][kMaxTemplate] = {};
    int lengths[kTemplates];
    for (int k = 0; k < kTemplates; ++k) {
        lengths[k] = kMaxTemplate - k;
        for (int j = 0; j < lengths[k]; ++j) shapes[k][j] = 0.5f + 0.5f * std::sin(0.2f * (k + 1) * j);
    }
    must(cudaMemcpyToSymbol(c_template, shapes, sizeof(shapes)), "templates");
    must(cudaMemcpyToSymbol(c_length, lengths, sizeof(lengths)), "lengths");

    float *d_contours, *d_distance;
    int* d_label;
    must(cudaMalloc(&d_contours, contours.size() * sizeof(float)), "malloc");
    must(cudaMalloc(&d_distance, (size_t)count * kTemplates * sizeof(float)), "malloc");
    must(cudaMalloc(&d_label, count * sizeof(int)), "malloc");
    must(cudaMemcpy(d_contours, contours.data(), contours.size() * sizeof(float), cudaMemcpyHostToDevice), "copy");

    auto step = [&] {
        warp_distance<<<dim3(count / kThreads, kTemplates), kThreads>>>(d_contours, d_distance, count);
        nearest<<<count / 256, 256>>>(d_distance, d_label, count);
    };
    for (int i = 0; i < 5; ++i) step();
    cudaEvent_t begin, end;
    must(cudaEventCreate(&begin), "event");
    must(cudaEventCreate(&end), "event");
    must(cudaEventRecord(begin), "record");
    const int rounds = 100;
    for (int i = 0; i < rounds; ++i) step();
    must(cudaEventRecord(end), "record");
    must(cudaEventSynchronize(end), "run");
    must(cudaGetLastError(), "launch");
    float ms = 0.f;
    must(cudaEventElapsedTime(&ms, begin, end), "elapsed");

    std::vector<float> distance((size_t)count * kTemplates);
    std::vector<int> label(count);
    must(cudaMemcpy(distance.data(), d_distance, distance.size() * sizeof(float), cudaMemcpyDeviceToHost), "copy");
    must(cudaMemcpy(label.data(), d_label, count * sizeof(int), cudaMemcpyDeviceToHost), "copy");
    int wrong = 0;
    for (int i = 0; i < count; i += 101) {
        float least = kFar;
        for (int k = 0; k < kTemplates; ++k) {
            const float want = host_dtw(contours, count, i, shapes[k], lengths[k]);
            least = std::min(least, want);
            if (!(std::fabs(distance[(size_t)k * count + i] - want) < 1e-3f)) ++wrong;
        }
        if (!(std::fabs(distance[(size_t)label[i] * count + i] - least) < 1e-3f)) ++wrong;
    }
    std::printf("wrong: %d\n", wrong);
    std::printf("us_per_iteration: %.3f\n", ms * 1e3 / rounds);
    return wrong != 0;
}
