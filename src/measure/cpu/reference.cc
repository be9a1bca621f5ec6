// SPDX-License-Identifier: Apache-2.0
#include "measure/cpu/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/parts.h"
#include "base/text.h"
#include "core/task/inputs.h"
#include "core/task/key.h"
#include "measure/cpu/session.h"

namespace kernelpro {

bool is_output(const Shaped& tensor) { return tensor.tensor->role == Role::kOutput; }

std::int64_t reference_bytes(const Shaped& t) {
  return is_floating(t.tensor->dtype) ? t.elements * 8 : t.bytes;
}

Result<CpuBuffers> reference_buffers(const std::vector<Shaped>& tensors) {
  std::vector<BufferSpec> specs;
  for (const Shaped& t : tensors) {
    specs.push_back({is_output(t) ? reference_bytes(t) : t.bytes, is_output(t), false});
  }
  return CpuBuffers::make(specs);
}

std::int64_t out_of_range(const Shaped& output, const Expected& expected) {
  const double largest = largest_value(output.tensor->dtype);
  return std::count_if(expected.values.begin(), expected.values.end(),
                       [=](double v) { return !(std::fabs(v) <= largest); });
}

bool representable(const std::vector<Shaped>& tensors, const InputSet& set,
                   const std::vector<std::int64_t>& given) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const double largest = largest_value(tensors[i].tensor->dtype);
    const std::int64_t allowed = i < given.size() ? given[i] : 0;
    std::int64_t not_finite = 0;
    for (const double v : set.expected[i].values) {
      if (std::fabs(v) <= largest) continue;
      // Results beyond the type are infinite, but later, or earlier, in honest arithmetic.
      if (std::isfinite(v) || ++not_finite > allowed) return false;
    }
  }
  return true;
}

Result<std::optional<InputSet>> CpuReference::make_set(const SetRequest& request) {
  const double start = thread_cpu_s();
  const int before = runs_;
  work_s_ = 0;
  Result<std::optional<InputSet>> set = compute_set(request);
  if (runs_ > before) {
    const double work = work_s_ + thread_cpu_s() - start;
    fastest_s_ = std::min(fastest_s_, work / (runs_ - before));
  }
  return set;
}

void CpuReference::note_given(const std::vector<Shaped>& tensors, const InputSet& set) {
  not_finite_.resize(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    not_finite_[i] = std::max(not_finite_[i], out_of_range(tensors[i], set.expected[i]));
  }
}

bool conclusive(const Shaped& output, const Admitted& admitted, const Rule& rule) {
  const bool noise =
      static_cast<double>(admitted.jumps) > kNoisyShare * static_cast<double>(output.elements);
  return !noise && admitted.worst <= kProbeRoom * rule.tolerance;
}

void make_room(DrawKind kind, Expected* expected) {
  if (expected->rule.kind != Rule::Kind::kScaled) return;
  expected->scale = std::max(expected->scale, least_scale(kind) * expected->rms);
}

std::vector<std::vector<char>> nudged_inputs(const Task& task, const std::vector<Shaped>& tensors,
                                             const InputSet& set, double by) {
  return changed_inputs(nudge_shapes(tensors, task.precision, true, by), set);
}

std::vector<std::vector<char>> changed_inputs(const std::vector<kp::ShapeSpec>& specs,
                                              const InputSet& set) {
  const std::uint64_t word = fresh_secret();
  std::vector<std::vector<char>> inputs = set.inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].empty() || specs[i].shape == kp::kUnchanged) continue;
    reshape(specs[i], kp::shape_key(word, static_cast<unsigned>(i)), &inputs[i]);
  }
  return inputs;
}

bool wants_norm(const Task& task, Policy policy, const SetRequest& request) {
  const DrawKind kind = request.probe != nullptr ? request.probe->kind : request.kind;
  const bool drawn = request.probe != nullptr || request.shapes.empty();
  return drawn && shows_norm(kind) && policy == Policy::kContract && norms_apply(task);
}

Deviation steady(const Shaped& output, const Deviation& nudged, const Expected& expected) {
  double largest = 0;
  for (const double v : expected.values) largest = std::max(largest, std::fabs(v));
  return steady(nudged, output.elements, largest, expected.rms);
}

namespace {

constexpr double kSensitive = 0x1p-4;  // tolerances: where less changes, no chance hides more
constexpr double kFarOff = 1e100;      // from any result

constexpr const char* kMendReference = "correct the task's reference.cpp";

// Where two runs on the same inputs differ by more than summation order could explain; -1 if
// nowhere.
std::int64_t disagreement(const Shaped& t, const Expected& a, const char* b) {
  if (!is_floating(t.tensor->dtype)) {
    const auto at =
        std::mismatch(a.bytes.begin(), a.bytes.end(), reinterpret_cast<const unsigned char*>(b));
    return at.first == a.bytes.end() ? -1
                                     : (at.first - a.bytes.begin()) / dtype_bytes(t.tensor->dtype);
  }
  const auto* second = reinterpret_cast<const double*>(b);
  for (std::int64_t i = 0; i < t.elements; ++i) {
    const double x = a.values[static_cast<std::size_t>(i)], y = second[i];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!(std::fabs(x - y) <= 1e-9 * std::max(std::fabs(x), a.rms))) return i;
  }
  return -1;
}

void draw_all(const Tensor& tensor, std::int64_t elements, int index, const kp::Key& key,
              char* to) {
  constexpr std::int64_t kPerThread = 1 << 18;
  in_parts(elements, kPerThread, [&](std::int64_t begin, std::int64_t end, int) {
    draw_inputs(tensor, index, key, begin, end - begin, to + begin * dtype_bytes(tensor.dtype));
  });
}

std::string reference_failure(const Outcome& outcome) {
  if (const auto* crashed = std::get_if<Crashed>(&outcome)) {
    return crashed->reason + (crashed->output.empty() ? "" : "\n" + crashed->output);
  }
  if (const auto* late = std::get_if<TimedOut>(&outcome)) {
    return "it ran longer than " + human_seconds(late->seconds);
  }
  if (const auto* rejected = std::get_if<Rejected>(&outcome)) return rejected->reason;
  return outcome_summary(outcome);
}

// If it was killed from outside, the machine is at fault.
tl::unexpected<Error> reference_error(const std::string& name, const Outcome& outcome) {
  const std::string message = name + " failed: " + reference_failure(outcome);
  if (!perhaps_killed(outcome)) return fail(ErrorKind::kTask, message, kMendReference);
  return fail(ErrorKind::kEnvironment, message,
              "find out what kills processes here (the out-of-memory killer writes to dmesg), then "
              "run the same command again");
}

class NativeReference : public CpuReference {
 public:
  NativeReference(const Task& task, const Case& c, const CpuReferenceSettings& settings)
      : task_(task), c_(c), settings_(settings), tensors_(shaped_tensors(task, c)) {}

  Result<void> start(const Binary& binary) {
    KP_ASSIGN(CpuBuffers memory, reference_buffers(tensors_));
    SessionSettings session;
    session.worker = settings_.worker;
    KP_ASSIGN(
        CpuSession::Started started,
        CpuSession::start(session, binary, tensors_, std::move(memory), "loading the reference"));
    if (const Outcome* outcome = std::get_if<Outcome>(&started)) {
      return reference_error(name(), *outcome);
    }
    session_ = std::move(std::get<std::unique_ptr<CpuSession>>(started));
    return {};
  }

  Result<std::optional<InputSet>> compute_set(const SetRequest& request) override {
    InputSet set;
    bool reshaped = request.shapes.empty();
    set.inputs.resize(tensors_.size());
    set.expected.resize(tensors_.size());
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const Shaped& t = tensors_[i];
      if (is_output(t)) continue;
      Tensor drawn = *t.tensor;
      if (request.probe != nullptr) drawn.init = request.probe->inits[i];
      set.inputs[i].resize(static_cast<std::size_t>(t.bytes));
      draw_all(drawn, t.elements, static_cast<int>(i), request.key, set.inputs[i].data());
      const DrawKind kind = request.probe != nullptr ? request.probe->kind : request.kind;
      reshaped |= reshape_input(t, request.shapes, i, kind, request.key, &set.inputs[i]);
      std::memcpy(buffers().data(i), set.inputs[i].data(), set.inputs[i].size());
    }
    if (!reshaped) return std::optional<InputSet>();
    KP_TRY(run());
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (!is_output(tensors_[i])) continue;
      Rule rule = rule_for(task_, *tensors_[i].tensor, settings_.policy);
      rule.typical = request.probe == nullptr;
      set.expected[i] = make_expected(tensors_[i], buffers().data(i), rule);
    }
    if (request.probe == nullptr && request.shapes.empty()) note_given(tensors_, set);
    if (request.probe != nullptr && !representable(tensors_, set, not_finite_)) {
      return std::optional<InputSet>();
    }
    if (request.twice) KP_TRY(run_again(set));
    if (wants_norm(task_, settings_.policy, request)) {
      const bool probe = request.probe != nullptr;
      KP_TRY(measure_norm(
          {probe ? request.probe->kind : request.kind, probe ? request.probe->tensor : -1}, &set));
    }
    if (request.probe != nullptr && wants_nudged(request.probe->kind)) {
      KP_ASSIGN(const bool usable, admit_nudged(request.probe->kind, &set));
      if (!usable) return std::optional<InputSet>();
      for (Expected& expected : set.expected) make_room(request.probe->kind, &expected);
    }
    return std::optional<InputSet>(std::move(set));
  }

 private:
  std::string name() const { return "the reference of case " + c_.name; }
  const CpuBuffers& buffers() const { return session_->buffers(); }

  // Runs on the inputs in the buffers; must overwrite the poison, which differs from the last one.
  Result<void> run() {
    const std::uint64_t round = ++poison_;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const Shaped& t = tensors_[i];
      if (!is_output(t)) continue;
      if (is_floating(t.tensor->dtype)) {
        std::fill_n(reinterpret_cast<double*>(buffers().data(i)), t.elements,
                    round % 2 == 0 ? kFarOff : -kFarOff);
      } else {
        fill_poison(make_poison(t.tensor->dtype, round), buffers().data(i), reference_bytes(t));
      }
    }
    const double used_ns = session_->busiest_thread_ns();
    const auto called = session_->call({}, settings_.timeout_s, "running the reference");
    add_work(1e-9 * std::max(0.0, session_->busiest_thread_ns() - used_ns));
    ++runs_;
    if (const Outcome* outcome = std::get_if<Outcome>(&called)) {
      return reference_error(name(), *outcome);
    }
    if (const auto broken = buffers().broken_canary()) {
      const Shaped& t = tensors_[broken->slot];
      return fail(ErrorKind::kTask,
                  name() + " " +
                      describe_stray("tensor " + t.tensor->name, reference_bytes(t),
                                     reference_bytes(t) / t.elements, broken->at, true),
                  kMendReference);
    }
    return {};
  }

  // Once.
  Result<void> measure_reach(const InputSet& set) {
    reach_ = 1;
    if (!wants_reach(task_, c_)) return {};
    load(changed_inputs(few_shapes(tensors_), set));
    KP_TRY(run());
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const Shaped& t = tensors_[i];
      if (!is_output(t) || !is_floating(t.tensor->dtype)) continue;
      const auto* values = reinterpret_cast<const double*>(buffers().data(i));
      const Deviation found = deviation({values, values + t.elements}, set.expected[i]);
      reach_ = std::max(reach_, reach_of(tensors_, found.changed));
    }
    return {};
  }

  // Measured once for each kind of contents and the tensor that it names.
  Result<void> measure_norm(const std::pair<DrawKind, int>& contents, InputSet* set) {
    std::vector<Deviation>& known = norms_[contents];
    const bool sparing = contents.first == DrawKind::kSparing;  // whose levels differ
    if (known.empty() || sparing) {
      known.assign(tensors_.size(), {});
      if (reach_ == 0) KP_TRY(measure_reach(*set));
      const double length = plain_length(task_, c_, reach_, contents.first);
      for (int made = 0; made < (sparing ? kSparingRuns : 1); ++made) {
        load(nudged_inputs(task_, tensors_, *set, norm_nudge(task_, c_)));
        KP_TRY(run());
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
          const Shaped& t = tensors_[i];
          if (!is_output(t) || !is_floating(t.tensor->dtype)) continue;
          const auto* values = reinterpret_cast<const double*>(buffers().data(i));
          const Deviation found =
              deviation({values, values + t.elements}, set->expected[i], t.shape);
          raise(with_sums(found, length), 1, &known[i]);
        }
      }
      for (std::size_t i = 0; i < tensors_.size(); ++i) {
        if (sparing && tensors_[i].elements < kFewestNormed) continue;
        if (is_output(tensors_[i])) known[i] = steady(tensors_[i], known[i], set->expected[i]);
      }
    }
    set->nudged = known;
    return {};
  }

  void load(const std::vector<std::vector<char>>& inputs) {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (!inputs[i].empty()) std::memcpy(buffers().data(i), inputs[i].data(), inputs[i].size());
    }
  }

  // Allows for what nudged inputs change. False: too much of it for the probe to be conclusive.
  Result<bool> admit_nudged(DrawKind kind, InputSet* set) {
    const bool kept = shows_products(kind) || (shows_lost(kind) && norms_apply(task_));
    if (kept) set->nudged.resize(tensors_.size());
    std::vector<double> scales;
    for (const Expected& expected : set->expected) scales.push_back(expected.scale);
    bool sensitive = true;
    for (int made = 0; made < kNudgedRuns && sensitive; ++made) {
      sensitive = false;
      load(nudged_inputs(task_, tensors_, *set));
      KP_TRY(run());
      for (std::size_t i = 0; i < tensors_.size(); ++i) {
        const Shaped& t = tensors_[i];
        if (!is_output(t) || !is_floating(t.tensor->dtype)) continue;
        const auto* values = reinterpret_cast<const double*>(buffers().data(i));
        const std::vector<double> results(values, values + t.elements);
        Expected& expected = set->expected[i];
        const Deviation found = deviation(results, expected);
        sensitive = sensitive || found.worst > kSensitive * expected.rule.tolerance;
        if (kept) raise(found, 1, &set->nudged[i]);
        if (!conclusive(t, admit(results, &expected), expected.rule)) return false;
        if (expected.scale > kProbeRoom * scales[i]) return false;
      }
    }
    return true;
  }

  Result<void> run_again(const InputSet& set) {
    KP_TRY(run());
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const Shaped& t = tensors_[i];
      if (!is_output(t)) continue;
      const std::int64_t at = disagreement(t, set.expected[i], buffers().data(i));
      if (at < 0) continue;
      return fail(ErrorKind::kTask,
                  name() +
                      " disagrees with itself: two runs on the same inputs gave different values "
                      "of " +
                      t.tensor->name + " at " + coordinates(t.shape, at),
                  "make reference.cpp write every output element, from the inputs alone");
    }
    return {};
  }

  const Task& task_;
  const Case& c_;
  CpuReferenceSettings settings_;
  std::vector<Shaped> tensors_;
  // Of kinds, and the tensors that they name; by tensor.
  std::map<std::pair<DrawKind, int>, std::vector<Deviation>> norms_;
  std::uint64_t poison_ = fresh_secret();
  std::unique_ptr<CpuSession> session_;
};

}  // namespace

Result<std::unique_ptr<CpuReference>> make_native_reference(const Task& task, const Case& c,
                                                            const Binary& reference,
                                                            const CpuReferenceSettings& settings) {
  auto result = std::make_unique<NativeReference>(task, c, settings);
  KP_TRY(result->start(reference));
  return std::unique_ptr<CpuReference>(std::move(result));
}

}  // namespace kernelpro
