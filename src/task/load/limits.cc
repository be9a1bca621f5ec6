// SPDX-License-Identifier: Apache-2.0
#include "task/load/limits.h"

#include <cfloat>
#include <cmath>

#include "base/text.h"

namespace kernelpro {

namespace {

// Largest safe magnitude in the dtype; integers stay exact as doubles.
double largest(DType dtype) {
  switch (dtype) {
    case DType::kFp32:
    case DType::kBf16:
      return 3e38;
    case DType::kFp16:
      return 65504;
    case DType::kInt32:
      return 2147483647;
    case DType::kInt64:
      return 9007199254740992;  // 2^53
    case DType::kBool:
      return 1;
  }
  return 0;
}

bool is_whole(double value) { return std::floor(value) == value; }

std::string range_problem(const Tensor& tensor, double low, double high) {
  const double most = largest(tensor.dtype);
  if (low >= -most && high <= most && (tensor.dtype != DType::kBool || low >= 0)) return "";
  return number(std::fabs(low) > std::fabs(high) ? low : high, 10) + " does not fit " +
         std::string(dtype_name(tensor.dtype));
}

}  // namespace

std::string init_problem(const Tensor& tensor) {
  const Init& init = tensor.init;
  const bool floating = is_floating(tensor.dtype);
  switch (init.kind) {
    case Init::Kind::kUniform:
      if (!floating) return "uniform draws fractions, the dtype holds integers; use integers";
      if (init.a >= init.b) return "low must be below high";
      if (init.b - init.a > 3e38) return "the range between low and high does not fit fp32";
      return range_problem(tensor, init.a, init.b);
    case Init::Kind::kNormal:
      if (!floating) return "normal draws fractions, the dtype holds integers; use integers";
      if (init.b <= 0) return "std must be above 0; use constant for a single value";
      return range_problem(tensor, init.a - 6 * init.b, init.a + 6 * init.b);
    case Init::Kind::kIntegers:
      if (!is_whole(init.a) || !is_whole(init.b)) return "low and high must be whole numbers";
      if (init.a > init.b) return "low must not be above high";
      if (init.b - init.a >= 4294967296.0) return "at most 2^32 different integers can be drawn";
      return range_problem(tensor, init.a, init.b);
    case Init::Kind::kBernoulli:
      return init.a < 0 || init.a > 1 ? "p must lie between 0 and 1" : "";
    case Init::Kind::kConstant:
      if (!floating && !is_whole(init.a)) return "value must be a whole number";
      return range_problem(tensor, init.a, init.a);
    case Init::Kind::kModule:
      return "only a PyTorch file draws inputs with its module; use uniform, normal, integers, "
             "bernoulli or constant";
  }
  return "";
}

}  // namespace kernelpro
