// SPDX-License-Identifier: Apache-2.0
// The input generator, shared by host code (core/task/inputs.cc) and the judge's kernels (compiled
// by NVRTC). Element i of tensor t under a key depends on (key, t, i) alone and is bit-equal on CPU
// and GPU: integer arithmetic, and single float operations that IEEE 754 rounds one way.
//
// Random bits come from ChaCha8 (Bernstein, "ChaCha, a variant of Salsa20", 2008), so that a kernel
// that reads some elements, however many, can compute neither the others nor the key. The mixer
// for what is no secret, poison and order, is splitmix64's finalizer (Steele, Lea, Flood: "Fast
// splittable pseudorandom number generators", 2014); it can be inverted.
//
// Drawn floats have as many random digits as their type holds, at every exponent: no grid tells
// them from other numbers, and there are too many of them to prepare for each.
//
// Includes nothing: the includer must provide a 64-bit `long long`, `fma` and `fmaf`.
#pragma once

#ifdef __CUDACC__
#define KP_DRAW __host__ __device__ inline
#else
// Inlined even without optimisation: of copies in several objects the linker keeps any, and all
// inputs pass through here.
#define KP_DRAW [[gnu::always_inline]] inline
#endif

namespace kp {

struct DrawSpec {
  int kind;           // as kernelpro::Init::Kind: uniform, normal, integers, bernoulli, constant
  int dtype;          // as kernelpro::DType: fp32, fp16, bf16, int32, int64, bool
  float first, last;  // uniform: the smallest and the largest value in [low, high)
  double a;           // offset, mean, constant, probability
  double b;           // width, standard deviation
  long long low;      // integers: smallest; integer tensors: the constant
  unsigned long long range;  // integers: how many values, at most 2^32
};

KP_DRAW unsigned long long mix64(unsigned long long z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// 256 bits. Keys of inputs come from the kernel's generator (core/task/key.h), one for each set of
// contents, none derived from another.
struct Key {
  unsigned words[8];
};

// One block of a stream: 64 bytes.
struct Block {
  unsigned long long words[8];
};

// `Word`: 32 bits, or a vector of such.
template <class Word>
KP_DRAW void quarter_round(Word& a, Word& b, Word& c, Word& d) {
  a += b;
  d ^= a;
  d = d << 16 | d >> 16;
  c += d;
  b ^= c;
  b = b << 12 | b >> 20;
  a += b;
  d ^= a;
  d = d << 8 | d >> 24;
  c += d;
  b ^= c;
  b = b << 7 | b >> 25;
}

template <int kRounds, class Word>
KP_DRAW void chacha_rounds(Word (&x)[16]) {
  for (int round = 0; round < kRounds; round += 2) {
    quarter_round(x[0], x[4], x[8], x[12]);
    quarter_round(x[1], x[5], x[9], x[13]);
    quarter_round(x[2], x[6], x[10], x[14]);
    quarter_round(x[3], x[7], x[11], x[15]);
    quarter_round(x[0], x[5], x[10], x[15]);
    quarter_round(x[1], x[6], x[11], x[12]);
    quarter_round(x[2], x[7], x[8], x[13]);
    quarter_round(x[3], x[4], x[9], x[14]);
  }
}

// What block `counter` of stream `stream` begins with.
KP_DRAW void chacha_start(const Key& key, unsigned long long stream, unsigned long long counter,
                          unsigned (&start)[16]) {
  start[0] = 0x61707865u;
  start[1] = 0x3320646eu;
  start[2] = 0x79622d32u;
  start[3] = 0x6b206574u;
  for (int i = 0; i < 8; ++i) start[4 + i] = key.words[i];
  start[12] = static_cast<unsigned>(counter);
  start[13] = static_cast<unsigned>(counter >> 32);
  start[14] = static_cast<unsigned>(stream);
  start[15] = static_cast<unsigned>(stream >> 32);
}

// Block `counter` of stream `stream` under `key`: ChaCha with `kRounds` rounds, a 64-bit counter
// and a 64-bit nonce.
template <int kRounds = 8>
KP_DRAW Block chacha(const Key& key, unsigned long long stream, unsigned long long counter) {
  unsigned start[16], x[16];
  chacha_start(key, stream, counter, start);
  for (int i = 0; i < 16; ++i) x[i] = start[i];
  chacha_rounds<kRounds>(x);
  Block block;
  for (int i = 0; i < 8; ++i) {
    block.words[i] = (x[2 * i] + start[2 * i]) |
                     static_cast<unsigned long long>(x[2 * i + 1] + start[2 * i + 1]) << 32;
  }
  return block;
}

// Streams under one key. Tensors' elements have the streams 0, 1, ... in the order of Args.
constexpr unsigned long long kVaryStreams = 1ull << 32;  // plus the tensor
constexpr unsigned long long kLeanStream = 2ull << 32;

// 64 bits for a purpose under `key` that tell nothing about the key or its other streams.
KP_DRAW unsigned long long subkey(const Key& key, unsigned long long stream) {
  return chacha(key, stream, 0).words[0];
}

// How many elements a block holds: an element takes one word, a normal one four.
KP_DRAW int block_elements(const DrawSpec& spec) { return spec.kind == 1 ? 2 : 8; }

// Replaces the last 16 bits of a binary32 by 0101... or 1010..., depending on the key, over noise.
// Rounding the result to fewer bits, at any position, errs by a third of the last bit, in a
// direction that is the same for all elements, so that errors add up instead of cancelling. Values
// that fit in 10 bits (zeros, small integers) are unchanged, and so are some others.
KP_DRAW unsigned lean_bits(unsigned bits, unsigned long long key, unsigned long long i) {
  const unsigned long long noise = mix64(key + i);
  const unsigned exponent = (bits >> 23) & 255u;
  if ((bits & 0x1fffu) == 0 || exponent == 0 || exponent == 255 || noise % 8 == 0) return bits;
  const unsigned last = (key & 1u) != 0 ? 0x5550u : 0xaaa0u;
  return (bits & ~0xffffu) | last | (static_cast<unsigned>(noise >> 32) & 15u);
}

// Place k of `samples` places spread over `count` elements, each at random within its part, so that
// periodic contents cannot bias the sample. REQUIRES: k < samples <= count.
KP_DRAW unsigned long long sample_place(unsigned long long k, unsigned long long samples,
                                        unsigned long long count) {
  const unsigned long long part = count / samples;
  return k * part + mix64(k) % part;
}

KP_DRAW unsigned float_bits(float value) { return __builtin_bit_cast(unsigned, value); }
KP_DRAW float bits_float(unsigned bits) { return __builtin_bit_cast(float, bits); }

// IEEE 754 binary32 to binary16, round to nearest even.
KP_DRAW unsigned short to_half(float value) {
  const unsigned bits = float_bits(value);
  const unsigned sign = (bits >> 16) & 0x8000u;
  const unsigned magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<unsigned short>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<unsigned short>(sign | 0x7c00u);
  if (magnitude < 0x33000001u) return static_cast<unsigned short>(sign);
  const int exponent = static_cast<int>(magnitude >> 23);
  const unsigned mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  const int shift = exponent < 113 ? 126 - exponent : 13;  // subnormal results keep fewer bits
  const unsigned kept = mantissa >> shift;
  const unsigned rest = mantissa & ((1u << shift) - 1);
  const unsigned half = 1u << (shift - 1);
  unsigned result = exponent < 113 ? kept : kept + (static_cast<unsigned>(exponent - 113) << 10);
  if (rest > half || (rest == half && (kept & 1u))) ++result;
  return static_cast<unsigned short>(sign | result);
}

KP_DRAW float from_half(unsigned short h) {
  const unsigned sign = (h & 0x8000u) << 16;
  const unsigned exponent = (h >> 10) & 31u;
  unsigned mantissa = h & 0x3ffu;
  if (exponent == 31) return bits_float(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return bits_float(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float value = static_cast<float>(mantissa) * 5.9604644775390625e-8f;  // 2^-24
  return bits_float(sign | float_bits(value));
}

// binary32 to bfloat16, round to nearest even.
KP_DRAW unsigned short to_bfloat16(float value) {
  const unsigned bits = float_bits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<unsigned short>((bits >> 16) | 0x40u);
  return static_cast<unsigned short>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

KP_DRAW float from_bfloat16(unsigned short b) { return bits_float(static_cast<unsigned>(b) << 16); }

// The upper 53 bits of a word as a number in [0, 1).
KP_DRAW double unit_double(unsigned long long word) {
  return static_cast<double>(static_cast<long long>(word >> 11)) * 1.1102230246251565e-16;  // 2^-53
}

// The sum of twelve 16-bit uniforms (Irwin-Hall), within +-6 deviations: multiples of 2^-16. The
// fourth word spreads each of them evenly as far as its neighbours.
KP_DRAW double draw_normal(const unsigned long long* words) {
  long long sum = 0;
  for (int lane = 0; lane < 3; ++lane) {
    const unsigned long long v = words[lane];
    sum += static_cast<long long>((v & 0xffff) + ((v >> 16) & 0xffff) + ((v >> 32) & 0xffff) +
                                  (v >> 48));
  }
  const double between = fma(unit_double(words[3]), 2.0, -1.0);
  return (static_cast<double>(2 * sum - 12 * 65535) + between) * 7.62939453125e-6;  // 2^-17
}

// A draw before conversion to the tensor's type: floats for the floating types. `words`: the
// element's own in its block. Computed in binary64 and rounded once, so that small results have all
// their digits too.
KP_DRAW float draw_float(const DrawSpec& spec, const unsigned long long* words) {
  const unsigned long long w = words[0];
  switch (spec.kind) {
    case 0: {
      const float value = static_cast<float>(fma(unit_double(w), spec.b, spec.a));
      return value < spec.first ? spec.first : value > spec.last ? spec.last : value;
    }
    case 1:
      return static_cast<float>(fma(draw_normal(words), spec.b, spec.a));
    case 2:
      return static_cast<float>(spec.low + static_cast<long long>(((w >> 32) * spec.range) >> 32));
    case 3:
      return unit_double(w) < spec.a ? 1.0f : 0.0f;
    default:
      return static_cast<float>(spec.a);
  }
}

KP_DRAW long long draw_integer(const DrawSpec& spec, const unsigned long long* words) {
  if (spec.kind == 2) {
    return spec.low + static_cast<long long>(((words[0] >> 32) * spec.range) >> 32);
  }
  if (spec.kind == 4) return spec.low;
  return static_cast<long long>(draw_float(spec, words));
}

// The bits of element `place` of a block in its own type, in the low bytes.
KP_DRAW unsigned long long draw_bits(const DrawSpec& spec, const Block& block, int place) {
  const unsigned long long* words = block.words + (spec.kind == 1 ? 4 * place : place);
  switch (spec.dtype) {
    case 0:
      return float_bits(draw_float(spec, words));
    case 1:
      return to_half(draw_float(spec, words));
    case 2:
      return to_bfloat16(draw_float(spec, words));
    case 3:
      return static_cast<unsigned>(draw_integer(spec, words));
    case 4:
      return static_cast<unsigned long long>(draw_integer(spec, words));
    default:
      return draw_integer(spec, words) != 0 ? 1u : 0u;
  }
}

}  // namespace kp
