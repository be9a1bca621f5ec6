// SPDX-License-Identifier: Apache-2.0
#include "measure/judge/probe_shapes.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "core/task/key.h"
#include "measure/judge/probe_rows.h"

namespace kernelpro {

namespace {

// Nonzero elements: sums of few are short, and many are needed to know the norm of the errors.
constexpr std::int64_t kFewestSparse = 64, kMostSparse = 512;
constexpr std::int64_t kFewest = 8;  // changed elements, about
constexpr float kBesideAddend = 0x1p20f;
constexpr double kFactorGrows = 0x1p10;    // where other tensors grow by kOtherFactor
constexpr double kAddendMatters = 0x1p-8;  // over what the tensor itself adds to the results
constexpr std::int64_t kFlatRow = 64;      // what counts as a row of a vector
constexpr double kLinear = 1e-9;           // float64 sums in another order
// As in python/kernelpro_torch/rounding.py.
constexpr double kNudges[] = {0x1p-20, 0x1p-11, 0x1p-10, 0x1p-7};  // by Precision

bool is_discrete(const Tensor& tensor) {
  return !is_floating(tensor.dtype) || tensor.init.kind == Init::Kind::kIntegers ||
         tensor.init.kind == Init::Kind::kBernoulli;
}

std::vector<std::string> extents_of(const Task& task, std::size_t tensor) {
  std::vector<std::string> extents = task.tensors[tensor].shape;
  if (!task.cases.empty() && tensor < task.cases[0].shapes.size()) {
    extents.clear();
    for (const std::int64_t n : task.cases[0].shapes[tensor]) extents.push_back(std::to_string(n));
  }
  std::erase(extents, "1");
  return extents;
}

// Whether a tensor's axes are some of an output's, in order.
bool may_be_added(const Task& task, std::size_t tensor) {
  const std::vector<std::string> wanted = extents_of(task, tensor);
  for (std::size_t i = 0; i < task.tensors.size(); ++i) {
    if (task.tensors[i].role != Role::kOutput) continue;
    std::size_t found = 0;
    for (const std::string& extent : extents_of(task, i)) {
      if (found < wanted.size() && extent == wanted[found]) ++found;
    }
    if (found == wanted.size()) return true;
  }
  return false;
}

bool is_among(const Task& task, const std::vector<int>& tensors, const Tensor& tensor) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](int i) { return &task.tensors[static_cast<std::size_t>(i)] == &tensor; });
}

bool has_index(const Task& task) {
  return std::any_of(task.tensors.begin(), task.tensors.end(), [](const Tensor& t) {
    return t.role == Role::kOutput && !is_floating(t.dtype);
  });
}

// Whether the shape of `kind` may change this tensor.
bool applies(DrawKind kind, const Task& task, const Tensor& tensor) {
  const ProbeRow& row = probe_row(kind);
  // Which of two equal elements an index names is often left open.
  if (row.makes_equal && has_index(task)) return false;
  const bool input = tensor.role == Role::kInput;
  const bool parameter = tensor.role == Role::kParameter && is_floating(tensor.dtype);
  const bool constant = tensor.init.kind == Init::Kind::kConstant;
  const bool given = tensor.init.kind == Init::Kind::kModule;  // by a module: perhaps constant
  switch (row.tensors) {
    case ProbedTensors::kNone:
      return false;
    case ProbedTensors::kContinuous:
      return input && !is_discrete(tensor) && !constant;
    case ProbedTensors::kDiscrete:
      return input && is_discrete(tensor) && !constant;
    case ProbedTensors::kConstant:
      return input && (constant || given);
    case ProbedTensors::kVarious:
      return input && (constant || given || !is_discrete(tensor));
    case ProbedTensors::kWholeNumbers:
      return input && is_floating(tensor.dtype) &&
             (given || tensor.init.kind == Init::Kind::kIntegers);
    case ProbedTensors::kNamed:
      return is_among(task, named_candidates(kind, task), tensor);
    case ProbedTensors::kFactors: {
      const std::vector<int> all = linear_candidates(task);
      return all.size() >= (row.short_sums ? 2 : 1) && is_among(task, all, tensor);
    }
    case ProbedTensors::kParameters:
      return parameter && !constant;
    case ProbedTensors::kAnyParameters:
      return parameter && (constant || !is_discrete(tensor));
  }
  return false;
}

// By how much the kinds that make values large do so, as a power of two.
int largest_power(DrawKind kind, DType dtype) {
  const bool single = dtype == DType::kFp32;
  if (kind == DrawKind::kLone) return single ? 20 : dtype == DType::kBf16 ? 10 : 4;
  return single ? 6 : 2;
}

struct Level {
  int sign;      // as kp::ShapeSpec::sign
  double share;  // of the power
};
// In another order for different kinds, so that one finds the range of the results from within, and
// another looks beyond where it can.
constexpr Level kAllLevels[] = {{0, 1}, {-1, 1}, {1, 1}, {0, 0.5}, {0, 0.25}};
constexpr Level kFewLevels[] = {{0, 1}, {0, 0.5}, {0, 0.25}, {-1, 1}, {1, 1}};
constexpr float kParameterLimits[] = {0, 4, 2};  // of growth; 0: none
constexpr int kBackgrounds[] = {0, -1, 1};       // signs
static_assert(std::size(kAllLevels) == kLargeLevels && std::size(kFewLevels) == kLargeLevels &&
              std::size(kParameterLimits) == kParameterLevels &&
              std::size(kBackgrounds) == kBackgroundLevels);
constexpr float kBackground = 64;    // over the largest drawn value
constexpr std::int64_t kSpared = 8;  // elements that count, for each result
constexpr double kDecide = 0.9;      // of the size of the results

std::int64_t most_results(const std::vector<Shaped>& tensors) {
  std::int64_t most = 1;
  for (const Shaped& t : tensors) {
    if (t.tensor->role == Role::kOutput) most = std::max(most, t.elements);
  }
  return most;
}

// Completes the spec of a kind that makes values large.
void enlarge(DrawKind kind, int level, const Tensor& tensor, std::uint64_t rows, std::uint64_t word,
             kp::ShapeSpec* spec) {
  if (probe_row(kind).changes_parameters) {
    spec->factor = kParameterLimits[level];
    return;
  }
  const bool few = kind == DrawKind::kFewInputs || kind == DrawKind::kOutliers;
  // An outlier may hide the rest of its row, at the first level, or only stand out.
  const bool hides = kind == DrawKind::kOutliers && level == 0 && ((word >> 40) & 1) != 0;
  const int above = kind == DrawKind::kOutliers ? std::max(level - 1, 0) : level;
  const Level& at = (few ? kFewLevels : kAllLevels)[above];
  const int most = largest_power(hides ? DrawKind::kLone : kind, tensor.dtype);
  const int power = static_cast<int>(std::lround(at.share * most));
  spec->sign = at.sign;
  // kScaled draws large values to begin with.
  spec->factor = std::ldexp(1.0f, kind == DrawKind::kScaled ? power - most : power);
  if (kind == DrawKind::kFewInputs) spec->factor = -spec->factor;
  if (kind == DrawKind::kOutliers) {
    constexpr std::uint64_t kOneIn[] = {1, 2, 8, 64};
    spec->period = static_cast<unsigned>(
        std::clamp<std::uint64_t>(rows / 2, 1, kOneIn[(word >> 16) % std::size(kOneIn)]));
  }
}

// The tensor's rows and channels; unchanged.
kp::ShapeSpec plain_spec(const Shaped& t) {
  kp::ShapeSpec spec{};
  spec.dtype = static_cast<int>(t.tensor->dtype);
  spec.period = 1;
  spec.depth = t.tensor->dtype == DType::kFp32 ? 12 : 5;
  spec.factor = 1;
  spec.count = static_cast<unsigned long long>(std::max<std::int64_t>(t.elements, 1));
  spec.row = spec.inner = spec.channels = 1;
  const auto& shape = t.shape;
  std::int64_t row = shape.size() < 2 ? kFlatRow : shape.back(), inner = 1, channels = 1;
  // [rows, columns], or [batch, channels, ...].
  if (shape.size() >= 2) channels = shape[1];
  for (std::size_t d = 2; d < shape.size(); ++d) inner *= shape[d];
  spec.row = static_cast<unsigned long long>(std::max<std::int64_t>(row, 1));
  spec.inner = static_cast<unsigned long long>(std::max<std::int64_t>(inner, 1));
  spec.channels = static_cast<unsigned long long>(std::max<std::int64_t>(channels, 1));
  return spec;
}

}  // namespace

bool leans(const Tensor& tensor) {
  const bool drawn =
      tensor.init.kind == Init::Kind::kUniform || tensor.init.kind == Init::Kind::kNormal;
  return tensor.role == Role::kInput && tensor.dtype == DType::kFp32 && drawn;
}

bool shows_products(DrawKind kind) { return probe_row(kind).shows_products; }

bool has_short_sums(DrawKind kind) { return probe_row(kind).short_sums; }

bool wants_products(DrawKind kind) { return probe_row(kind).wants_products; }

bool probe_varies(DrawKind kind) { return probe_row(kind).shape != kp::kUnchanged; }

bool wants_nudged(DrawKind kind) { return probe_varies(kind) || kind == DrawKind::kScaled; }

double least_scale(DrawKind kind) {
  return probe_varies(kind) && !probe_row(kind).usual_scale ? kShapeRoom : 0;
}

int probe_levels(DrawKind kind) { return probe_row(kind).levels; }

std::vector<int> named_candidates(DrawKind kind, const Task& task) {
  std::vector<int> all;
  if (probe_row(kind).tensors != ProbedTensors::kNamed) return all;
  for (std::size_t i = 0; i < task.tensors.size(); ++i) {
    const Tensor& t = task.tensors[i];
    const bool varies = t.init.kind != Init::Kind::kConstant && !is_discrete(t);
    if (t.role == Role::kInput && varies) all.push_back(static_cast<int>(i));
  }
  if (all.size() < 2) all.clear();
  if (kind == DrawKind::kFaint) {
    std::erase_if(all, [&](int i) { return !may_be_added(task, static_cast<std::size_t>(i)); });
  }
  return all;
}

int named_input(DrawKind kind, const Task& task, std::uint64_t word) {
  const std::vector<int> all = named_candidates(kind, task);
  return all.empty() ? -1 : all[(word >> 20) % all.size()];
}

kp::Key naming_key(DrawKind kind, const Task& task, int tensor) {
  kp::Key key = fresh_key();
  while (named_input(kind, task, kp::subkey(key, kp::kShapeStream)) != tensor) key = fresh_key();
  return key;
}

bool shape_applies(DrawKind kind, const Task& task) {
  return std::any_of(task.tensors.begin(), task.tensors.end(),
                     [&](const Tensor& t) { return applies(kind, task, t); });
}

std::vector<kp::ShapeSpec> probe_shapes(const Task& task, const std::vector<Shaped>& tensors,
                                        DrawKind kind, std::uint64_t word, int linear, bool addend,
                                        int level) {
  std::vector<kp::ShapeSpec> specs;
  const ProbeRow& row = probe_row(kind);
  const bool milder = kind == DrawKind::kScaled && level > 0;
  const int shape = milder ? kp::kPowerOfTwo : row.shape;
  if (shape == kp::kUnchanged || row.short_sums) return specs;
  const auto parameters = static_cast<std::uint64_t>(
      std::count_if(tensors.begin(), tensors.end(),
                    [&](const Shaped& t) { return applies(kind, task, *t.tensor); }));
  const int named = named_input(kind, task, word);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Shaped& t = tensors[i];
    kp::ShapeSpec& spec = specs.emplace_back(plain_spec(t));
    if (!applies(kind, task, *t.tensor)) continue;
    if (kind == DrawKind::kSparse && static_cast<int>(i) != linear) continue;
    if (named >= 0 && static_cast<int>(i) != named) continue;
    // A module's square matrix may be symmetric.
    const bool square = t.shape.size() == 2 && t.shape[0] == t.shape[1];
    if (task.module && square && row.by_place) continue;
    const std::uint64_t mine = kp::shape_word(word, i);
    spec.shape = shape;
    if (kind == DrawKind::kTiny) spec.factor = t.tensor->dtype == DType::kFp32 ? 0x1p-10f : 0x1p-4f;
    // Not always the same, so that nobody knows how small it is. Small enough that exp() of
    // whatever it is multiplied into is exactly 1: otherwise plain sums of thousands of values just
    // below one lose at each step the little by which these differ from one (8e-6 of the norm of an
    // attention whose factor is 2^-16).
    if (kind == DrawKind::kFaint) spec.factor = kp::two_to(-26 - static_cast<int>(mine % 12));
    if (row.few) {
      if (shape == kp::kFew) spec.depth = task.module && square ? 1 : 0;
      spec.period =
          static_cast<unsigned>(std::clamp<std::int64_t>(t.elements / kFewest, 1, 1 << 30));
    }
    if (kind == DrawKind::kLargeParameters || kind == DrawKind::kTinyParameters) {
      // Two of many: products of many factors leave the range.
      if (parameters > 2 && (mine >> 8) % parameters >= 2) spec.shape = kp::kUnchanged;
      spec.factor = 0x1p-10f;
    }
    if (kind == DrawKind::kZeros) {
      spec.sign = 0;
      spec.period = 2;
    } else if (kind == DrawKind::kSparing) {
      spec.sign = kBackgrounds[level];
      spec.factor = kBackground;
      spec.period = static_cast<unsigned>(
          std::clamp<std::int64_t>(t.elements / (kSpared * most_results(tensors)), 4, 1 << 30));
    } else if (row.levels > 1) {
      enlarge(kind, level, *t.tensor, spec.count / spec.row, mine, &spec);
    }
    if (kind == DrawKind::kSparse) {
      constexpr float kSizes[] = {1, 0x1p-8f, 0x1p8f};
      const std::int64_t nonzero = std::clamp(t.elements / 512, kFewestSparse, kMostSparse);
      spec.period =
          static_cast<unsigned>(std::clamp<std::int64_t>(t.elements / nonzero, 2, 1 << 30));
      spec.factor = addend ? kBesideAddend : kSizes[(mine >> 8) % 3];
    }
    if (t.tensor->init.kind == Init::Kind::kIntegers) {
      spec.first = static_cast<long long>(t.tensor->init.a);
      spec.range = static_cast<unsigned long long>(t.tensor->init.b - t.tensor->init.a);
    }
    if (t.tensor->init.kind == Init::Kind::kBernoulli) spec.range = 1;
  }
  const bool any = std::any_of(specs.begin(), specs.end(), [](const kp::ShapeSpec& spec) {
    return spec.shape != kp::kUnchanged;
  });
  if (!any) specs.clear();
  return specs;
}

bool reshape_input(const Shaped& tensor, const std::vector<kp::ShapeSpec>& specs, std::size_t index,
                   DrawKind kind, const kp::Key& key, std::vector<char>* data) {
  const Tensor& t = *tensor.tensor;
  const bool given = t.init.kind == Init::Kind::kModule;
  const bool leaning = leans(t) || (given && t.role == Role::kInput && t.dtype == DType::kFp32);
  if (kind == DrawKind::kLowBits && leaning) lean(kp::subkey(key, kp::kLeanStream), data);
  if (index >= specs.size() || specs[index].shape == kp::kUnchanged) return false;
  const std::uint64_t word = kp::subkey(key, kp::kShapeStream);
  return reshape(specs[index], kp::shape_key(word, static_cast<unsigned>(index)), data);
}

bool multiplies(const Task& task, const Case& c) { return task_matmul_flops(task, c) > 0; }

std::vector<int> linear_candidates(const Task& task) {
  const bool result = std::any_of(task.tensors.begin(), task.tensors.end(), [](const Tensor& t) {
    return t.role == Role::kOutput && t.dtype == DType::kFp32;
  });
  std::vector<int> all;
  for (std::size_t i = 0; result && i < task.tensors.size(); ++i) {
    const Tensor& t = task.tensors[i];
    const bool drawn = t.init.kind == Init::Kind::kUniform || t.init.kind == Init::Kind::kNormal ||
                       t.init.kind == Init::Kind::kIntegers || t.init.kind == Init::Kind::kModule;
    if (t.role == Role::kInput && t.dtype == DType::kFp32 && drawn) {
      all.push_back(static_cast<int>(i));
    }
  }
  return all;
}

std::vector<kp::ShapeSpec> power_shapes(const std::vector<Shaped>& tensors, int tensor,
                                        float factor, float others, bool parameters) {
  std::vector<kp::ShapeSpec> specs;
  for (const Shaped& t : tensors) {
    kp::ShapeSpec& spec = specs.emplace_back(plain_spec(t));
    const bool wanted =
        t.tensor->role == Role::kInput || (parameters && t.tensor->role == Role::kParameter);
    if (others == 1 || !wanted || t.tensor->dtype != DType::kFp32) continue;
    spec.shape = kp::kPowerOfTwo;
    spec.factor = others;
  }
  kp::ShapeSpec& spec = specs[static_cast<std::size_t>(tensor)];
  spec.shape = kp::kPowerOfTwo;
  spec.factor = factor;
  return specs;
}

bool is_linear(const std::vector<OutputLook>& once, const std::vector<OutputLook>& doubled,
               const std::vector<OutputLook>& negated) {
  const auto same = [](double a, double b, double scale) {
    return std::isfinite(a) && std::isfinite(b) && std::fabs(a - b) <= kLinear * scale;
  };
  bool any = false;
  for (std::size_t i = 0; i < once.size(); ++i) {
    const OutputLook &a = once[i], &b = doubled[i], &c = negated[i];
    any = any || a.rms > 0;
    const double scale = std::max({std::fabs(a.low), std::fabs(a.high), a.rms});
    if (!same(2 * a.rms, b.rms, scale) || !same(2 * a.low, b.low, scale) ||
        !same(2 * a.high, b.high, scale) || !same(a.rms, c.rms, scale) ||
        !same(-a.low, c.high, scale) || !same(-a.high, c.low, scale)) {
      return false;
    }
  }
  return any;
}

bool has_addend(const std::vector<OutputLook>& large, const std::vector<OutputLook>& gone) {
  for (std::size_t i = 0; i < large.size(); ++i) {
    const double share = large[i].rms / static_cast<double>(kLinearFactors[0]);
    if (gone[i].rms > kAddendMatters * share) return true;
  }
  return false;
}

bool is_factor(const std::vector<OutputLook>& alone, const std::vector<OutputLook>& together) {
  for (std::size_t i = 0; i < alone.size(); ++i) {
    if (together[i].rms > kFactorGrows * alone[i].rms) return true;
  }
  return false;
}

std::vector<kp::ShapeSpec> nudge_shapes(const std::vector<Shaped>& tensors, Precision precision,
                                        bool parameters, double by) {
  std::vector<kp::ShapeSpec> specs;
  for (const Shaped& t : tensors) {
    kp::ShapeSpec& spec = specs.emplace_back(plain_spec(t));
    const bool wanted =
        t.tensor->role == Role::kInput || (parameters && t.tensor->role == Role::kParameter);
    if (!wanted || !is_floating(t.tensor->dtype)) continue;
    spec.shape = kp::kNudge;
    spec.factor = static_cast<float>(by * kNudges[static_cast<int>(precision)]);
  }
  return specs;
}

std::vector<kp::ShapeSpec> background_alone(std::vector<kp::ShapeSpec> specs) {
  for (kp::ShapeSpec& spec : specs) spec.period = std::numeric_limits<unsigned>::max();
  return specs;
}

bool few_decide(const std::vector<OutputLook>& all, const std::vector<OutputLook>& background) {
  for (std::size_t i = 0; i < std::min(all.size(), background.size()); ++i) {
    const double change = std::fabs(all[i].rms - background[i].rms);
    if (all[i].rms > 0 && change >= kDecide * all[i].rms) return true;
  }
  return false;
}

}  // namespace kernelpro
