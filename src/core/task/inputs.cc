// SPDX-License-Identifier: Apache-2.0
#include "core/task/inputs.h"

#include <algorithm>
#include <cstring>

#include "base/parts.h"

namespace kernelpro {

namespace {

// The value of a floating type (integers: of binary32) that is nearest to `bound`, or the next one
// from there in its direction that `fits`.
template <class Fits>
float bound_of(DType dtype, double bound, float towards, const Fits& fits) {
  const auto rounded = [dtype](float value) {
    return dtype == DType::kFp16   ? kp::from_half(kp::to_half(value))
           : dtype == DType::kBf16 ? kp::from_bfloat16(kp::to_bfloat16(value))
                                   : value;
  };
  float value = rounded(static_cast<float>(bound));
  for (float from = value; !fits(static_cast<double>(value)) && std::isfinite(from);) {
    // Halves are fewer: their neighbours are several steps of a float away.
    from = std::nextafterf(from, towards);
    value = rounded(from);
  }
  return value;
}

}  // namespace

kp::DrawSpec draw_spec(const Tensor& tensor) {
  const Init& init = tensor.init;
  kp::DrawSpec spec{};
  spec.kind = static_cast<int>(init.kind);
  spec.dtype = static_cast<int>(tensor.dtype);
  spec.a = init.a;
  spec.b = init.b;
  if (init.kind == Init::Kind::kUniform) {
    spec.b = init.b - init.a;
    spec.first = bound_of(tensor.dtype, init.a, INFINITY, [&](double v) { return v >= init.a; });
    spec.last = bound_of(tensor.dtype, init.b, -INFINITY, [&](double v) { return v < init.b; });
    spec.last = std::max(spec.first, spec.last);
  }
  spec.low = static_cast<long long>(init.a);
  spec.range =
      init.kind == Init::Kind::kIntegers ? static_cast<unsigned long long>(init.b - init.a) + 1 : 1;
  return spec;
}

namespace {

// Blocks are computed for several counters at once, one in each lane of a vector. As many as a
// register of the machine holds: sixteen words of state fill its registers.
template <int kLanes>
struct Vectors {
  typedef unsigned Words __attribute__((vector_size(4 * kLanes)));
  typedef int Ints __attribute__((vector_size(4 * kLanes)));
  typedef double Doubles __attribute__((vector_size(8 * kLanes)));
  typedef float Floats __attribute__((vector_size(4 * kLanes)));
};

template <int kLanes>
KERNELPRO_WIDE_PART void many_blocks(const kp::Key& key, unsigned long long stream,
                                     unsigned long long counter,
                                     typename Vectors<kLanes>::Words (&words)[16]) {
  using Words = typename Vectors<kLanes>::Words;
  unsigned first[16];
  kp::chacha_start(key, stream, counter, first);
  Words start[16];
  for (int i = 0; i < 16; ++i) start[i] = first[i] - Words{};
  for (int lane = 0; lane < kLanes; ++lane) {
    const unsigned long long number = counter + static_cast<unsigned long long>(lane);
    start[12][lane] = static_cast<unsigned>(number);
    start[13][lane] = static_cast<unsigned>(number >> 32);
  }
  for (int i = 0; i < 16; ++i) words[i] = start[i];
  kp::chacha_rounds<8>(words);
  for (int i = 0; i < 16; ++i) words[i] += start[i];
}

// kp::unit_double of words of two halves: both parts are exact, and so is their sum.
template <int kLanes>
KERNELPRO_WIDE_PART void unit_doubles(const typename Vectors<kLanes>::Words& low,
                                      const typename Vectors<kLanes>::Words& high,
                                      typename Vectors<kLanes>::Doubles* units) {
  using Ints = typename Vectors<kLanes>::Ints;
  using Doubles = typename Vectors<kLanes>::Doubles;
  const Doubles upper =
      __builtin_convertvector(reinterpret_cast<Ints>(high ^ 0x80000000u), Doubles) + 0x1p31;
  const Doubles lower = __builtin_convertvector(reinterpret_cast<Ints>(low >> 11), Doubles);
  *units = upper * 0x1p-32 + lower * 0x1p-53;
}

// kp::draw_float of uniform (0) and normal (1) elements at `place` of each block.
template <int kKind, int kLanes>
KERNELPRO_WIDE_PART void draw_floats(const kp::DrawSpec& spec,
                                     const typename Vectors<kLanes>::Words (&words)[16], int place,
                                     typename Vectors<kLanes>::Floats* floats) {
  using V = Vectors<kLanes>;
  typename V::Doubles values;
  if constexpr (kKind == 1) {
    const auto* own = words + 8 * place;
    typename V::Words sum{};
    for (int i = 0; i < 6; ++i) sum += (own[i] & 0xffffu) + (own[i] >> 16);
    const auto whole = reinterpret_cast<typename V::Ints>(2 * sum - 12 * 65535);
    unit_doubles<kLanes>(own[6], own[7], &values);
    const auto between = values * 2.0 - 1.0;
    values = (__builtin_convertvector(whole, typename V::Doubles) + between) * 0x1p-17;
  } else {
    unit_doubles<kLanes>(words[2 * place], words[2 * place + 1], &values);
  }
  for (int lane = 0; lane < kLanes; ++lane) values[lane] = fma(values[lane], spec.b, spec.a);
  *floats = __builtin_convertvector(values, typename V::Floats);
  if constexpr (kKind == 0) {
    const typename V::Floats first = spec.first - typename V::Floats{};
    const typename V::Floats last = spec.last - typename V::Floats{};
    *floats = *floats < first ? first : *floats > last ? last : *floats;
  }
}

// Elements of kLanes blocks, in order.
template <int kKind, int kType, class Element, int kLanes>
KERNELPRO_WIDE_PART void draw_blocks(kp::DrawSpec spec, const kp::Key& key,
                                     unsigned long long stream, unsigned long long counter,
                                     char* to) {
  constexpr int kInBlock = kKind == 1 ? 2 : 8;
  spec.kind = kKind;
  spec.dtype = kType;
  typename Vectors<kLanes>::Words words[16];
  many_blocks<kLanes>(key, stream, counter, words);
  Element elements[kLanes * kInBlock];
  for (int place = 0; place < kInBlock; ++place) {
    if constexpr (kType < 3) {
      typename Vectors<kLanes>::Floats floats;
      draw_floats<kKind, kLanes>(spec, words, place, &floats);
      for (int lane = 0; lane < kLanes; ++lane) {
        const float value = floats[lane];
        elements[lane * kInBlock + place] =
            static_cast<Element>(kType == 0   ? kp::float_bits(value)
                                 : kType == 1 ? kp::to_half(value)
                                              : kp::to_bfloat16(value));
      }
    } else {
      for (int lane = 0; lane < kLanes; ++lane) {
        kp::Block block{};
        block.words[place] = words[2 * place][lane] |
                             static_cast<unsigned long long>(words[2 * place + 1][lane]) << 32;
        elements[lane * kInBlock + place] = static_cast<Element>(kp::draw_bits(spec, block, place));
      }
    }
  }
  std::memcpy(to, elements, sizeof elements);
}

template <int kKind, int kType, class Element, int kLanes>
KERNELPRO_WIDE_PART std::int64_t draw_many(const kp::DrawSpec& spec, const kp::Key& key,
                                           unsigned long long stream, std::int64_t number,
                                           std::int64_t count, char* to) {
  constexpr std::int64_t kAtOnce = kLanes * (kKind == 1 ? 2 : 8);
  std::int64_t drawn = 0;
  for (; drawn + kAtOnce <= count; drawn += kAtOnce, number += kLanes) {
    draw_blocks<kKind, kType, Element, kLanes>(
        spec, key, stream, static_cast<unsigned long long>(number),
        to + drawn * static_cast<std::int64_t>(sizeof(Element)));
  }
  return drawn;
}

template <int kLanes>
KERNELPRO_WIDE_PART std::int64_t draw_in_lanes(const kp::DrawSpec& spec, const kp::Key& key,
                                               unsigned long long stream, std::int64_t number,
                                               std::int64_t count, char* to) {
  switch (8 * spec.kind + spec.dtype) {
    case 0:
      return draw_many<0, 0, unsigned, kLanes>(spec, key, stream, number, count, to);
    case 1:
      return draw_many<0, 1, unsigned short, kLanes>(spec, key, stream, number, count, to);
    case 2:
      return draw_many<0, 2, unsigned short, kLanes>(spec, key, stream, number, count, to);
    case 8:
      return draw_many<1, 0, unsigned, kLanes>(spec, key, stream, number, count, to);
    case 9:
      return draw_many<1, 1, unsigned short, kLanes>(spec, key, stream, number, count, to);
    case 10:
      return draw_many<1, 2, unsigned short, kLanes>(spec, key, stream, number, count, to);
    case 8 * 2 + 3:
      return draw_many<2, 3, unsigned, kLanes>(spec, key, stream, number, count, to);
    default:
      return 0;
  }
}

// Draws the first elements of up to `count` that begin with block `number`; how many.
using DrawMost = std::int64_t(const kp::DrawSpec& spec, const kp::Key& key,
                              unsigned long long stream, std::int64_t number, std::int64_t count,
                              char* to);

std::int64_t draw_plain(const kp::DrawSpec& spec, const kp::Key& key, unsigned long long stream,
                        std::int64_t number, std::int64_t count, char* to) {
  return draw_in_lanes<4>(spec, key, stream, number, count, to);
}

#ifdef KERNELPRO_VECTORS
[[gnu::target("arch=x86-64-v3")]] std::int64_t draw_avx2(const kp::DrawSpec& spec,
                                                         const kp::Key& key,
                                                         unsigned long long stream,
                                                         std::int64_t number, std::int64_t count,
                                                         char* to) {
  return draw_in_lanes<8>(spec, key, stream, number, count, to);
}

[[gnu::target("arch=x86-64-v4")]] std::int64_t draw_avx512(const kp::DrawSpec& spec,
                                                           const kp::Key& key,
                                                           unsigned long long stream,
                                                           std::int64_t number, std::int64_t count,
                                                           char* to) {
  return draw_in_lanes<16>(spec, key, stream, number, count, to);
}

DrawMost* fastest_draw() {
  if (__builtin_cpu_supports("x86-64-v4")) return draw_avx512;
  if (__builtin_cpu_supports("x86-64-v3")) return draw_avx2;
  return draw_plain;
}
#else
DrawMost* fastest_draw() { return draw_plain; }
#endif

DrawMost* const draw_most = fastest_draw();

}  // namespace

void draw_inputs(const Tensor& tensor, int index, const kp::Key& key, std::int64_t first,
                 std::int64_t count, void* out) {
  const kp::DrawSpec spec = draw_spec(tensor);
  const auto bytes = static_cast<std::int64_t>(dtype_bytes(tensor.dtype));
  const auto stream = static_cast<unsigned long long>(static_cast<unsigned>(index));
  char* to = static_cast<char*>(out);
  const std::int64_t in_block = kp::block_elements(spec), end = first + count;
  for (std::int64_t i = first; i < end;) {
    const std::int64_t number = i / in_block;
    if (i % in_block == 0) {
      const std::int64_t drawn = draw_most(spec, key, stream, number, end - i, to);
      i += drawn;
      to += drawn * bytes;
      if (drawn > 0) continue;
    }
    const kp::Block block = kp::chacha(key, stream, static_cast<unsigned long long>(number));
    for (; i < std::min(end, (number + 1) * in_block); ++i, to += bytes) {
      const unsigned long long bits = kp::draw_bits(spec, block, static_cast<int>(i % in_block));
      std::memcpy(to, &bits, static_cast<std::size_t>(bytes));
    }
  }
}

double element_as_double(DType dtype, const void* data, std::int64_t i) {
  const char* at = static_cast<const char*>(data) + i * dtype_bytes(dtype);
  const auto load = [at](auto value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::kFp32:
      return static_cast<double>(load(float{}));
    case DType::kFp16:
      return static_cast<double>(kp::from_half(load(static_cast<unsigned short>(0))));
    case DType::kBf16:
      return static_cast<double>(kp::from_bfloat16(load(static_cast<unsigned short>(0))));
    case DType::kInt32:
      return load(std::int32_t{});
    case DType::kInt64:
      return static_cast<double>(load(std::int64_t{}));
    case DType::kBool:
      return load(static_cast<unsigned char>(0)) != 0 ? 1 : 0;
  }
  return 0;
}

}  // namespace kernelpro
