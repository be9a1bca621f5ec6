// SPDX-License-Identifier: Apache-2.0
// AES in counter mode over a large buffer (key sizes 128, 192 and 256).
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#define CK(call)                                                                     \
  do {                                                                               \
    cudaError_t e_ = (call);                                                         \
    if (e_ != cudaSuccess) {                                                         \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
      return 1;                                                                      \
    }                                                                                \
  } while (0)

namespace aes {

__constant__ uint32_t c_te0[256];
__constant__ uint32_t c_round_keys[60];

__device__ __forceinline__ uint32_t ror(uint32_t v, int n) { return __funnelshift_r(v, v, n); }
__device__ __forceinline__ uint32_t swap32(uint32_t v) { return __byte_perm(v, 0, 0x0123); }

__device__ __forceinline__ uint32_t column(const uint32_t* te, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return te[a >> 24] ^ ror(te[(b >> 16) & 255u], 8) ^ ror(te[(c >> 8) & 255u], 16) ^ ror(te[d & 255u], 24);
}

__device__ __forceinline__ uint32_t last_column(const uint32_t* te, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return ((te[a >> 24] << 16) & 0xff000000u) | ((te[(b >> 16) & 255u] << 8) & 0x00ff0000u) |
         (te[(c >> 8) & 255u] & 0x0000ff00u) | ((te[d & 255u] >> 8) & 0x000000ffu);
}

template <int ROUNDS, int THREADS>
__global__ void __launch_bounds__(THREADS)
    ctr_crypt(const uint4* __restrict__ src, uint4* __restrict__ dst, uint3 nonce, uint32_t first, uint32_t blocks) {
  __shared__ uint32_t te[256];
  if (threadIdx.x < 256) te[threadIdx.x] = c_te0[threadIdx.x];
  __syncthreads();
  const uint32_t stride = gridDim.x * THREADS;
  for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < blocks; i += stride) {
    const uint4 text = src[i];
    uint32_t s0 = nonce.x ^ c_round_keys[0];
    uint32_t s1 = nonce.y ^ c_round_keys[1];
    uint32_t s2 = nonce.z ^ c_round_keys[2];
    uint32_t s3 = (first + i) ^ c_round_keys[3];
#pragma unroll
    for (int r = 1; r < ROUNDS; ++r) {
      const uint32_t t0 = column(te, s0, s1, s2, s3) ^ c_round_keys[4 * r];
      const uint32_t t1 = column(te, s1, s2, s3, s0) ^ c_round_keys[4 * r + 1];
      const uint32_t t2 = column(te, s2, s3, s0, s1) ^ c_round_keys[4 * r + 2];
      const uint32_t t3 = column(te, s3, s0, s1, s2) ^ c_round_keys[4 * r + 3];
      s0 = t0; s1 = t1; s2 = t2; s3 = t3;
    }
    uint4 o;
    o.x = text.x ^ swap32(last_column(te, s0, s1, s2, s3) ^ c_round_keys[4 * ROUNDS]);
    o.y = text.y ^ swap32(last_column(te, s1, s2, s3, s0) ^ c_round_keys[4 * ROUNDS + 1]);
    o.z = text.z ^ swap32(last_column(te, s2, s3, s0, s1) ^ c_round_keys[4 * ROUNDS + 2]);
    o.w = text.w ^ swap32(last_column(te, s3, s0, s1, s2) ^ c_round_keys[4 * ROUNDS + 3]);
    dst[i] = o;
  }
}

}  // namespace aes

static uint8_t sbox[256];
static uint8_t xtime(uint8_t v) { return uint8_t((v << 1) ^ ((v & 0x80) ? 0x1b : 0)); }

static void make_sbox() {
  uint8_t p = 1, q = 1;
  do {
    p = p ^ xtime(p);
    q ^= q << 1; q ^= q << 2; q ^= q << 4;
    if (q & 0x80) q ^= 0x09;
    auto rol = [](uint8_t v, int n) { return uint8_t((v << n) | (v >> (8 - n))); };
    sbox[p] = uint8_t(q ^ rol(q, 1) ^ rol(q, 2) ^ rol(q, 3) ^ rol(q, 4) ^ 0x63);
  } while (p != 1);
  sbox[0] = 0x63;
}

static uint32_t sub_word(uint32_t w) {
  return uint32_t(sbox[w >> 24]) << 24 | uint32_t(sbox[(w >> 16) & 255]) << 16 | uint32_t(sbox[(w >> 8) & 255]) << 8 | sbox[w & 255];
}

static int expand_key(const uint32_t* key, int words, uint32_t* rk) {
  const int rounds = words + 6;
  uint32_t rcon = 1;
  for (int i = 0; i < 4 * (rounds + 1); ++i) {
    if (i < words) { rk[i] = key[i]; continue; }
    uint32_t t = rk[i - 1];
    if (i % words == 0) {
      t = sub_word((t << 8) | (t >> 24)) ^ (rcon << 24);
      rcon = xtime(uint8_t(rcon));
    } else if (words > 6 && i % words == 4) {
      t = sub_word(t);
    }
    rk[i] = rk[i - words] ^ t;
  }
  return rounds;
}

static void encrypt_block(const uint32_t* rk, int rounds, const uint8_t in[16], uint8_t out[16]) {
  uint8_t s[16], t[16];
  auto add = [&](int r) { for (int i = 0; i < 16; ++i) s[i] ^= uint8_t(rk[4 * r + i / 4] >> (24 - 8 * (i % 4))); };
  std::memcpy(s, in, 16);
  add(0);
  for (int r = 1; r <= rounds; ++r) {
    for (int i = 0; i < 16; ++i) t[i] = sbox[s[(i + 4 * (i % 4)) % 16]];
    for (int c = 0; c < 4; ++c)
      for (int i = 0; i < 4; ++i) {
        const uint8_t a = t[4 * c + i], b = t[4 * c + (i + 1) % 4];
        s[4 * c + i] = r == rounds ? a
                                   : uint8_t(xtime(a) ^ xtime(b) ^ b ^ t[4 * c + (i + 2) % 4] ^ t[4 * c + (i + 3) % 4]);
      }
    add(r);
  }
  std::memcpy(out, s, 16);
}

int main(int argc, char** argv) {
  make_sbox();
  uint32_t te0[256];
  for (int i = 0; i < 256; ++i) {
    const uint8_t s = sbox[i], s2 = xtime(s);
    te0[i] = uint32_t(s2) << 24 | uint32_t(s) << 16 | uint32_t(s) << 8 | uint8_t(s2 ^ s);
  }
  const int key_words = argc > 1 ? (argv[1][0] == '2' ? 8 : 6) : 4;
  const uint32_t key[8] = {0x2b7e1516u, 0x28aed2a6u, 0xabf71588u, 0x09cf4f3cu, 0x603deb10u, 0x15ca71beu, 0x2b73aef0u, 0x857d7781u};
  uint32_t rk[60] = {};
  const int rounds = expand_key(key, key_words, rk);
  const uint32_t blocks = 2u << 20;
  const uint3 nonce = make_uint3(0xf0f1f2f3u, 0xf4f5f6f7u, 0xf8f9fafbu);
  const uint32_t first = 0xfcfd0000u;

  std::vector<uint4> text(blocks), out(blocks);
  uint32_t x = 99u;
  auto next = [&] { x ^= x << 13; x ^= x >> 17; x ^= x << 5; return x; };
  for (auto& t : text) t = make_uint4(next(), next(), next(), next());

  uint4 *d_in, *d_out;
  CK(cudaMalloc(&d_in, blocks * sizeof(uint4)));
  CK(cudaMalloc(&d_out, blocks * sizeof(uint4)));
  CK(cudaMemcpy(d_in, text.data(), blocks * sizeof(uint4), cudaMemcpyHostToDevice));
  CK(cudaMemcpyToSymbol(aes::c_te0, te0, sizeof(te0)));
  CK(cudaMemcpyToSymbol(aes::c_round_keys, rk, sizeof(rk)));

  const int grid = 132 * 8;
  auto step = [&] {
    if (rounds == 10) aes::ctr_crypt<10, 256><<<grid, 256>>>(d_in, d_out, nonce, first, blocks);
    else if (rounds == 12) aes::ctr_crypt<12, 256><<<grid, 256>>>(d_in, d_out, nonce, first, blocks);
    else aes::ctr_crypt<14, 256><<<grid, 256>>>(d_in, d_out, nonce, first, blocks);
  };
  for (int i = 0; i < 3; ++i) step();
  CK(cudaDeviceSynchronize());
  cudaEvent_t t0, t1;
  CK(cudaEventCreate(&t0));
  CK(cudaEventCreate(&t1));
  const int iters = 60;
  CK(cudaEventRecord(t0));
  for (int i = 0; i < iters; ++i) step();
  CK(cudaEventRecord(t1));
  CK(cudaEventSynchronize(t1));
  CK(cudaGetLastError());
  float ms = 0.0f;
  CK(cudaEventElapsedTime(&ms, t0, t1));
  CK(cudaMemcpy(out.data(), d_out, blocks * sizeof(uint4), cudaMemcpyDeviceToHost));

  for (uint32_t i = 0; i < blocks; i += 997) {
    const uint32_t w[4] = {nonce.x, nonce.y, nonce.z, first + i};
    uint8_t in[16], ks[16], want[16];
    for (int b = 0; b < 16; ++b) in[b] = uint8_t(w[b / 4] >> (24 - 8 * (b % 4)));
    encrypt_block(rk, rounds, in, ks);
    std::memcpy(want, &text[i], 16);
    for (int b = 0; b < 16; ++b) want[b] ^= ks[b];
    if (std::memcmp(want, &out[i], 16) != 0) {
      std::fprintf(stderr, "wrong cipher text in block %u\n", i);
      return 1;
    }
  }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
  return 0;
}
