// SPDX-License-Identifier: Apache-2.0
#include "core/task/inputs.h"

#include <algorithm>
#include <cstring>

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

void draw_inputs(const Tensor& tensor, int index, const kp::Key& key, std::int64_t first,
                 std::int64_t count, void* out) {
  const kp::DrawSpec spec = draw_spec(tensor);
  const std::size_t bytes = static_cast<std::size_t>(dtype_bytes(tensor.dtype));
  char* to = static_cast<char*>(out);
  const std::int64_t in_block = kp::block_elements(spec), end = first + count;
  for (std::int64_t i = first; i < end;) {
    const std::int64_t number = i / in_block;
    const kp::Block block =
        kp::chacha(key, static_cast<unsigned>(index), static_cast<unsigned long long>(number));
    for (; i < std::min(end, (number + 1) * in_block); ++i, to += bytes) {
      const unsigned long long bits = kp::draw_bits(spec, block, static_cast<int>(i % in_block));
      std::memcpy(to, &bits, bytes);
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
