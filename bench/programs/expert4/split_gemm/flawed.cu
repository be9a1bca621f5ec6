// SPDX-License-Identifier: Apache-2.0
// Single-precision C = A * B^T on tensor cores: operands split into three bf16 parts, fp32 accumulation.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CK(x)                                                                              \
    do {                                                                                   \
        cudaError_t e_ = (x);                                                              \
        if (e_ != cudaSuccess) {                                                           \
            std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
            std::exit(1);                                                                  \
        }                                                                                  \
    } while (0)

namespace emu {

constexpr int kParts = 3;

struct Shape {
    static constexpr int BM = 128, BN = 256, BK = 32, Stages = 3;
    static constexpr int ABytes = BM * BK * 2, BBytes = BN * BK * 2;
    static constexpr int StageBytes = kParts * (ABytes + BBytes);
    static constexpr int SmemBytes = Stages * StageBytes + 1024;
};

__device__ __forceinline__ uint32_t smem_u32(const void* p) { return uint32_t(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ void cp16(uint32_t dst, const void* src) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(dst), "l"(src));
}
__device__ __forceinline__ void cp_commit() { asm volatile("cp.async.commit_group;\n"); }
template <int N>
__device__ __forceinline__ void cp_wait() { asm volatile("cp.async.wait_group %0;\n" ::"n"(N)); }

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define SM90A(...) __VA_ARGS__
#else
#define SM90A(...)
#endif
__device__ __forceinline__ void wg_fence() { SM90A(asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");) }
__device__ __forceinline__ void wg_commit() { SM90A(asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");) }
template <int N>
__device__ __forceinline__ void wg_wait() { SM90A(asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(N) : "memory");) }

// K-major tile with 64-byte rows, 64-byte swizzle, 8-row groups 512 bytes apart.
__device__ __forceinline__ uint64_t tile_desc(uint32_t addr) {
    return uint64_t((addr & 0x3FFFF) >> 4) | (uint64_t(1) << 16) | (uint64_t(512 >> 4) << 32) | (uint64_t(2) << 62);
}

__device__ __forceinline__ void wgmma_64x256x16(float (&d)[128], uint64_t a, uint64_t b) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile(
        "{\n"
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, "
        "%8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, "
        "%24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, "
        "%40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, "
        "%56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, "
        "%72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, "
        "%88, %89, %90, %91, %92, %93, %94, %95, "
        "%96, %97, %98, %99, %100, %101, %102, %103, "
        "%104, %105, %106, %107, %108, %109, %110, %111, "
        "%112, %113, %114, %115, %116, %117, %118, %119, "
        "%120, %121, %122, %123, %124, %125, %126, %127}, "
        "%128, %129, 1, 1, 1, 0, 0;\n"
        "}\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]),
          "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
          "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]),
          "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
          "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
          "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
          "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
          "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]),
          "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
          "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]),
          "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
          "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]),
          "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]),
          "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]),
          "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]),
          "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]),
          "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]),
          "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]),
          "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]),
          "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]),
          "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]),
          "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]),
          "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]),
          "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]),
          "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]),
          "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]),
          "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]),
          "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]),
          "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
        : "l"(a), "l"(b));
#endif
}

template <int Rows>
__device__ __forceinline__ void stage_tile(uint32_t dst, const __nv_bfloat16* src, int ld, int tid) {
#pragma unroll
    for (int i = 0; i < Rows * 4 / 256; ++i) {
        int c = tid + i * 256, row = c >> 2, chunk = c & 3;
        cp16(dst + row * 64 + ((chunk ^ ((row >> 1) & 3)) << 4), src + size_t(row) * ld + chunk * 8);
    }
}

struct Plain {
    __device__ float operator()(float v, int) const { return v; }
};
struct BiasRelu {
    const float* bias;
    __device__ float operator()(float v, int col) const { return fmaxf(v + __ldg(bias + col), 0.0f); }
};

template <class S, class Epilogue>
__global__ void __launch_bounds__(256, 1)
    split_gemm(const __nv_bfloat16* __restrict__ A, const __nv_bfloat16* __restrict__ B, float* __restrict__ C, int M,
               int N, int K, Epilogue epi) {
    extern __shared__ uint8_t raw[];
    const uint32_t base = (smem_u32(raw) + 1023) & ~1023u;
    const int tid = threadIdx.x, wg = tid >> 7;
    const int row0 = blockIdx.y * S::BM, col0 = blockIdx.x * S::BN;
    const size_t planeA = size_t(M) * K, planeB = size_t(N) * K;
    const __nv_bfloat16* gA = A + size_t(row0) * K;
    const __nv_bfloat16* gB = B + size_t(col0) * K;

    auto load = [&](int kt) {
        uint32_t s = base + (kt % S::Stages) * S::StageBytes;
#pragma unroll
        for (int p = 0; p < kParts; ++p) stage_tile<S::BM>(s + p * S::ABytes, gA + p * planeA + kt * S::BK, K, tid);
#pragma unroll
        for (int p = 0; p < kParts; ++p)
            stage_tile<S::BN>(s + kParts * S::ABytes + p * S::BBytes, gB + p * planeB + kt * S::BK, K, tid);
    };

    float acc[128];
#pragma unroll
    for (int i = 0; i < 128; ++i) acc[i] = 0.0f;
    const int tiles = K / S::BK;
#pragma unroll
    for (int i = 0; i < S::Stages - 1; ++i) {
        load(i);
        cp_commit();
    }
    for (int kt = 0; kt < tiles; ++kt) {
        cp_wait<S::Stages - 2>();
        asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
        __syncthreads();
        const uint32_t s = base + (kt % S::Stages) * S::StageBytes;
        const uint64_t dA = tile_desc(s + wg * 64 * 64);
        const uint64_t dB = tile_desc(s + kParts * S::ABytes);
        wg_fence();
#pragma unroll
        for (int kk = 0; kk < S::BK / 16; ++kk)
#pragma unroll
            for (int i = kParts - 1; i >= 0; --i)
#pragma unroll
                for (int j = kParts - 1; j >= 0; --j)
                    wgmma_64x256x16(acc, dA + ((i * S::ABytes) >> 4) + kk * 2, dB + ((j * S::BBytes) >> 4) + kk * 2);
        wg_commit();
        wg_wait<1>();
        __syncthreads();
        if (kt + S::Stages - 1 < tiles) load(kt + S::Stages - 1);
        cp_commit();
    }
    wg_wait<0>();

    const int lane = tid & 31, warp = (tid >> 5) & 3;
    const int r = row0 + wg * 64 + warp * 16 + (lane >> 2);
#pragma unroll
    for (int n = 0; n < 32; ++n) {
        int c = col0 + n * 8 + (lane & 3) * 2;
        float2 lo = make_float2(epi(acc[n * 4], c), epi(acc[n * 4 + 1], c + 1));
        float2 hi = make_float2(epi(acc[n * 4 + 2], c), epi(acc[n * 4 + 3], c + 1));
        *reinterpret_cast<float2*>(C + size_t(r) * N + c) = lo;
        *reinterpret_cast<float2*>(C + size_t(r + 8) * N + c) = hi;
    }
}

__global__ void split_parts(const float4* __restrict__ x, uint2* __restrict__ parts, size_t n4) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i >= n4) return;
    float4 f = x[i];
    float v[4] = {f.x, f.y, f.z, f.w};
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
        __nv_bfloat16 b[4];
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            b[e] = __float2bfloat16_rn(v[e]);
            v[e] -= __bfloat162float(b[e]);
        }
        __nv_bfloat162 lo(b[0], b[1]), hi(b[2], b[3]);
        parts[p * n4 + i] = make_uint2(*reinterpret_cast<uint32_t*>(&lo), *reinterpret_cast<uint32_t*>(&hi));
    }
}

template <class Epilogue>
void gemm(const __nv_bfloat16* A, const __nv_bfloat16* B, float* C, int M, int N, int K, Epilogue e) {
    CK(cudaFuncSetAttribute(split_gemm<Shape, Epilogue>, cudaFuncAttributeMaxDynamicSharedMemorySize, Shape::SmemBytes));
    split_gemm<Shape, Epilogue><<<dim3(N / Shape::BN, M / Shape::BM), 256, Shape::SmemBytes>>>(A, B, C, M, N, K, e);
    CK(cudaGetLastError());
}

void split(const float* x, __nv_bfloat16* parts, size_t n) {
    split_parts<<<unsigned((n / 4 + 255) / 256), 256>>>(reinterpret_cast<const float4*>(x), reinterpret_cast<uint2*>(parts), n / 4);
    CK(cudaGetLastError());
}

}  // namespace emu

int main(int argc, char**) {
    const int M = 12 * 128, N = 11 * 256, K = 2048, iters = 60;
    std::vector<float> A(size_t(M) * K), B(size_t(N) * K), bias(N);
    uint32_t s = 2463534242u;
    auto rnd = [&] {
        s ^= s << 13;
        s ^= s >> 17;
        s ^= s << 5;
        return float(s >> 8) * (1.0f / 8388608.0f) - 1.0f;
    };
    for (auto& v : A) v = rnd();
    for (auto& v : B) v = rnd();
    for (auto& v : bias) v = rnd();
    float *dA, *dB, *dC, *dbias;
    __nv_bfloat16 *pA, *pB;
    CK(cudaMalloc(&dA, A.size() * 4));
    CK(cudaMalloc(&dB, B.size() * 4));
    CK(cudaMalloc(&dC, size_t(M) * N * 4));
    CK(cudaMalloc(&dbias, N * 4));
    CK(cudaMalloc(&pA, A.size() * 2 * emu::kParts));
    CK(cudaMalloc(&pB, B.size() * 2 * emu::kParts));
    CK(cudaMemcpy(dA, A.data(), A.size() * 4, cudaMemcpyHostToDevice));
    CK(cudaMemcpy(dB, B.data(), B.size() * 4, cudaMemcpyHostToDevice));
    CK(cudaMemcpy(dbias, bias.data(), N * 4, cudaMemcpyHostToDevice));
    emu::split(dB, pB, B.size());
    const bool relu = argc > 1;
    auto step = [&] {
        emu::split(dA, pA, A.size());
        if (relu)
            emu::gemm(pA, pB, dC, M, N, K, emu::BiasRelu{dbias});
        else
            emu::gemm(pA, pB, dC, M, N, K, emu::Plain{});
    };
    for (int i = 0; i < 5; ++i) step();
    cudaEvent_t a, b;
    CK(cudaEventCreate(&a));
    CK(cudaEventCreate(&b));
    CK(cudaEventRecord(a));
    for (int i = 0; i < iters; ++i) step();
    CK(cudaEventRecord(b));
    CK(cudaEventSynchronize(b));
    float ms = 0;
    CK(cudaEventElapsedTime(&ms, a, b));
    std::vector<float> C(size_t(M) * N);
    CK(cudaMemcpy(C.data(), dC, C.size() * 4, cudaMemcpyDeviceToHost));
    for (int t = 0; t < 4000; ++t) {
        int r = int((t * 2654435761u) % M), c = int((t * 40503u + 17) % N);
        double ref = 0;
        for (int k = 0; k < K; ++k) ref += double(A[size_t(r) * K + k]) * B[size_t(c) * K + k];
        if (relu) ref = std::fmax(ref + bias[c], 0.0);
        double g = C[size_t(r) * N + c];
        if (!(std::fabs(ref - g) < 1e-2)) {
            std::printf("mismatch (%d,%d): %.8g vs %.8g\n", r, c, g, ref);
            return 1;
        }
    }
    std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
    return 0;
}
