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

// Blocks are computed for this many counters at once, one in each lane of a vector.
constexpr int kLanes = 16;
using Lanes = unsigned __attribute__((vector_size(4 * kLanes)));

KERNELPRO_WIDE_PART void many_blocks(const kp::Key& key, unsigned long long stream,
                                     unsigned long long counter, unsigned (&words)[16][kLanes]) {
  unsigned first[16];
  kp::chacha_start(key, stream, counter, first);
  Lanes start[16], x[16];
  for (int i = 0; i < 16; ++i) start[i] = first[i] - Lanes{};
  for (int lane = 0; lane < kLanes; ++lane) {
    const unsigned long long number = counter + static_cast<unsigned long long>(lane);
    start[12][lane] = static_cast<unsigned>(number);
    start[13][lane] = static_cast<unsigned>(number >> 32);
  }
  for (int i = 0; i < 16; ++i) x[i] = start[i];
  kp::chacha_rounds<8>(x);
  for (int i = 0; i < 16; ++i) {
    x[i] += start[i];
    std::memcpy(words[i], &x[i], sizeof x[i]);
  }
}

// Elements of kLanes blocks, in order.
template <int kKind, int kType, class Element>
KERNELPRO_WIDE_PART void draw_blocks(kp::DrawSpec spec, const kp::Key& key,
                                     unsigned long long stream, unsigned long long counter,
                                     char* to) {
  constexpr int kWords = kKind == 1 ? 4 : 1, kInBlock = 8 / kWords;
  spec.kind = kKind;
  spec.dtype = kType;
  unsigned words[16][kLanes];
  many_blocks(key, stream, counter, words);
  Element elements[kLanes * kInBlock];
  for (int place = 0; place < kInBlock; ++place) {
    for (int lane = 0; lane < kLanes; ++lane) {
      kp::Block block{};
      for (int w = place * kWords; w < (place + 1) * kWords; ++w) {
        block.words[w] =
            words[2 * w][lane] | static_cast<unsigned long long>(words[2 * w + 1][lane]) << 32;
      }
      elements[lane * kInBlock + place] = static_cast<Element>(kp::draw_bits(spec, block, place));
    }
  }
  std::memcpy(to, elements, sizeof elements);
}

template <int kKind, int kType, class Element>
KERNELPRO_WIDE_PART std::int64_t draw_many(const kp::DrawSpec& spec, const kp::Key& key,
                                           unsigned long long stream, std::int64_t number,
                                           std::int64_t count, char* to) {
  constexpr std::int64_t kAtOnce = kLanes * (kKind == 1 ? 2 : 8);
  std::int64_t drawn = 0;
  for (; drawn + kAtOnce <= count; drawn += kAtOnce, number += kLanes) {
    draw_blocks<kKind, kType, Element>(spec, key, stream, static_cast<unsigned long long>(number),
                                       to + drawn * static_cast<std::int64_t>(sizeof(Element)));
  }
  return drawn;
}

// Draws the first elements of up to `count` that begin with block `number`; how many.
KERNELPRO_WIDE std::int64_t draw_most(const kp::DrawSpec& spec, const kp::Key& key,
                                      unsigned long long stream, std::int64_t number,
                                      std::int64_t count, char* to) {
  switch (8 * spec.kind + spec.dtype) {
    case 0:
      return draw_many<0, 0, unsigned>(spec, key, stream, number, count, to);
    case 1:
      return draw_many<0, 1, unsigned short>(spec, key, stream, number, count, to);
    case 2:
      return draw_many<0, 2, unsigned short>(spec, key, stream, number, count, to);
    case 8:
      return draw_many<1, 0, unsigned>(spec, key, stream, number, count, to);
    case 9:
      return draw_many<1, 1, unsigned short>(spec, key, stream, number, count, to);
    case 10:
      return draw_many<1, 2, unsigned short>(spec, key, stream, number, count, to);
    case 8 * 2 + 3:
      return draw_many<2, 3, unsigned>(spec, key, stream, number, count, to);
    default:
      return 0;
  }
}

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
