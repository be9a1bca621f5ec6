// SPDX-License-Identifier: Apache-2.0
// A PyTorch module as the reference of the cpu target, over shared memory.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "core/inputs.h"
#include "evaluate/cpu_reference.h"

namespace kernelpro {

namespace {

constexpr double kNoise = 0.5;  // a strict result this far off its scale is rounding noise

// Parameters with values of their own, times 1 +- 1/64 at most. Masks, ones, zeros and tables that
// repeat themselves stay as they are.
bool vary(const Shaped& t, std::uint64_t seed, std::vector<char>* data) {
  if (!is_floating(t.tensor->dtype) || t.elements < 8) return false;
  std::vector<double> seen;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(t.elements, 64); ++i) {
    seen.push_back(element_as_double(t.tensor->dtype, data->data(), i));
    if (seen.back() == 0 || !std::isfinite(seen.back())) return false;
  }
  std::sort(seen.begin(), seen.end());
  if (std::adjacent_find(seen.begin(), seen.end()) != seen.end()) return false;
  const std::int64_t size = dtype_bytes(t.tensor->dtype);
  for (std::int64_t i = 0; i < t.elements; ++i) {
    const std::uint64_t bits = kp::mix64(seed + static_cast<std::uint64_t>(i));
    const double by = (static_cast<double>(bits >> 40) * 0x1p-23 - 1) / 64;
    const auto value =
        static_cast<float>(element_as_double(t.tensor->dtype, data->data(), i) * (1 + by));
    const unsigned stored = t.tensor->dtype == DType::kFp32   ? kp::float_bits(value)
                            : t.tensor->dtype == DType::kFp16 ? kp::to_half(value)
                                                              : kp::to_bfloat16(value);
    std::memcpy(data->data() + i * size, &stored, static_cast<std::size_t>(size));
  }
  return true;
}

class TorchReference : public CpuReference {
 public:
  TorchReference(const Task& task, const Case& c, ModuleReference& module,
                 const CpuReferenceSettings& settings)
      : task_(task),
        c_(c),
        module_(module),
        settings_(settings),
        tensors_(shaped_tensors(task, c)) {}
  ~TorchReference() override {
    if (attached_) static_cast<void>(module_.detach(c_));
  }

  Result<void> start() {
    Result<CpuBuffers> buffers = reference_buffers(tensors_);
    if (!buffers) return tl::unexpected<Error>(buffers.error());
    buffers_ = std::move(*buffers);
    std::vector<SharedBuffer> shared;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      SharedBuffer buffer;
      buffer.tensor = static_cast<int>(i);
      buffer.expected = is_output(tensors_[i]);
      buffer.wide = buffer.expected && is_floating(tensors_[i].tensor->dtype);
      const CpuBuffers::Place place = buffers_.place_of(i);
      buffer.fd = place.fd;
      buffer.bytes = static_cast<std::uint64_t>(place.file_bytes);
      buffer.offset = static_cast<std::uint64_t>(place.offset);
      shared.push_back(buffer);
    }
    KP_TRY(module_.attach(task_, c_, 0, shared));
    attached_ = true;
    return {};
  }

  Result<std::optional<InputSet>> make_set(const SetRequest& request) override {
    const DrawKind kind = request.probe != nullptr ? request.probe->kind : request.kind;
    const Result<DrawFacts> drawn = module_.draw(c_, 0, request.seed, kind);
    if (!drawn) return tl::unexpected<Error>(drawn.error());
    if (request.probe != nullptr && !drawn->changed) return std::optional<InputSet>();
    InputSet set;
    set.seed = request.seed;
    keep_inputs(request, &set);
    const bool contract = settings_.policy == Policy::kContract;
    KP_TRY(compute(contract ? Numerics::kFloat64 : Numerics::kKernelBench, request.twice,
                   request.probe == nullptr, &set));
    if (!contract) return std::optional<InputSet>(std::move(set));
    if (request.probe != nullptr && !representable(tensors_, set)) return std::optional<InputSet>();
    const bool first = request.twice;
    if (request.probe == nullptr && !first) return std::optional<InputSet>(std::move(set));
    Result<bool> meets = strict_meets(set, request.probe == nullptr);
    if (!meets) return tl::unexpected<Error>(meets.error());
    if (!*meets) return std::optional<InputSet>();
    return std::optional<InputSet>(std::move(set));
  }

 private:
  void keep_inputs(const SetRequest& request, InputSet* set) {
    set->inputs.resize(tensors_.size());
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const Shaped& t = tensors_[i];
      if (is_output(t)) continue;
      set->inputs[i].assign(buffers_.data(i), buffers_.data(i) + t.bytes);
      const bool leaning = request.probe != nullptr && request.probe->kind == DrawKind::kLowBits;
      if (leaning && t.tensor->role == Role::kInput && t.tensor->dtype == DType::kFp32) {
        lean(t, kp::mix64(request.seed), &set->inputs[i]);
      }
      if (!request.vary_weights || t.tensor->role != Role::kParameter) continue;
      if (vary(t, kp::mix64(request.seed + i), &set->inputs[i])) set->varied = true;
    }
  }

  // From the set's inputs: a module may have changed those in the buffers in place.
  Result<void> compute(Numerics numerics, bool twice, bool given, InputSet* set) {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (set->inputs[i].empty()) continue;
      std::memcpy(buffers_.data(i), set->inputs[i].data(), set->inputs[i].size());
    }
    Result<ComputeFacts> facts = module_.compute(c_, 0, numerics, twice);
    if (!facts && numerics == Numerics::kFloat64 && facts.error().kind != ErrorKind::kTask) {
      add_label("no-float64");  // not enough memory for it
      facts = module_.compute(c_, 0, Numerics::kStrict, twice);
    }
    if (!facts) return tl::unexpected<Error>(facts.error());
    if (!facts->random.empty()) {
      return fail(ErrorKind::kTask, "the module disagrees with itself: " + facts->random,
                  "remove what is random from it, for example with model.eval()");
    }
    seconds_ = facts->milliseconds * 1e-3;
    set->expected.assign(tensors_.size(), Expected{});
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (!is_output(tensors_[i])) continue;
      Rule rule = rule_for(task_, *tensors_[i].tensor, settings_.policy);
      if (i < tolerances_.size()) rule.tolerance = std::max(rule.tolerance, tolerances_[i]);
      rule.typical = given && (i >= coarse_.size() || !coarse_[i]);
      set->expected[i] = make_expected(tensors_[i], buffers_.data(i), rule);
    }
    return {};
  }

  // Does the module's own arithmetic in the declared types meet the contract? What it cannot meet
  // on the given inputs is asked of nobody: the tolerance becomes twice its error.
  Result<bool> strict_meets(InputSet& set, bool given) {
    const std::vector<Expected> exact = std::move(set.expected);
    KP_TRY(compute(Numerics::kStrict, false, given, &set));
    std::vector<Expected> strict = std::exchange(set.expected, exact);
    tolerances_.resize(tensors_.size());
    coarse_.resize(tensors_.size());
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const Shaped& t = tensors_[i];
      if (!is_output(t) || !is_floating(t.tensor->dtype)) continue;
      Expected& expected = set.expected[i];
      double& tolerance = expected.rule.tolerance;
      double worst = worst_error(expected, strict[i].values);
      if (given && worst > tolerance / 2 && expected.scale < expected.rms) {
        // Its small results are rounding noise of the large ones: those say what is small.
        coarse_[i] = true;
        expected.rule.typical = false;
        expected.scale = expected.rms;
        worst = worst_error(expected, strict[i].values);
      }
      if (worst <= tolerance / 2) continue;
      if (!given && worst > tolerance) return false;
      if (!given) continue;
      if (!(worst < kNoise)) {
        return fail(ErrorKind::kTask,
                    "the task is degenerate: output " + t.tensor->name +
                        " is rounding noise, an error of " + number(worst, 3) +
                        " of its scale in the module's own arithmetic",
                    "choose a module whose result says something");
      }
      tolerance = tolerances_[i] = std::max(tolerance, 2 * worst);
      add_label("tolerance-of-module");
    }
    return true;
  }

  static double worst_error(const Expected& expected, const std::vector<double>& got) {
    double worst = 0;
    for (std::size_t k = 0; k < got.size(); ++k) {
      worst =
          std::max(worst, element_error(expected.rule, got[k], expected.values[k], expected.scale));
    }
    return worst;
  }

  void add_label(const std::string& label) {
    if (std::find(labels_.begin(), labels_.end(), label) == labels_.end()) labels_.push_back(label);
  }

  const Task& task_;
  const Case& c_;
  ModuleReference& module_;
  CpuReferenceSettings settings_;
  std::vector<Shaped> tensors_;
  std::vector<double> tolerances_;  // by tensor, where more than the rule's is allowed
  std::vector<bool> coarse_;        // by tensor: the scale is the root mean square
  CpuBuffers buffers_;
  bool attached_ = false;
};

}  // namespace

Result<std::unique_ptr<CpuReference>> make_module_reference(const Task& task, const Case& c,
                                                            ModuleReference& module,
                                                            const CpuReferenceSettings& settings) {
  auto result = std::make_unique<TorchReference>(task, c, module, settings);
  KP_TRY(result->start());
  return std::unique_ptr<CpuReference>(std::move(result));
}

}  // namespace kernelpro
