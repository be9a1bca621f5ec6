// SPDX-License-Identifier: Apache-2.0
#include "evaluate/cpu_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "core/inputs.h"

namespace kernelpro {

bool is_output(const Shaped& tensor) { return tensor.tensor->role == Role::kOutput; }

std::int64_t output_bytes(const CpuCase& state) {
  std::int64_t bytes = 0;
  for (const Shaped& t : state.tensors) bytes += is_output(t) ? t.bytes : 0;
  return bytes;
}

namespace {

// Bytes of an output as the reference writes it.
std::int64_t reference_bytes(const Shaped& t) {
  return is_floating(t.tensor->dtype) ? t.elements * 8 : t.bytes;
}

// Where two runs on the same inputs differ by more than the order of a sum could explain; -1 if
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

void draw_all(const Shaped& t, int index, std::uint64_t seed, char* to) {
  constexpr std::int64_t kPerThread = 1 << 18;
  const std::int64_t parts = std::clamp<std::int64_t>(
      t.elements / kPerThread, 1, std::max(1u, std::thread::hardware_concurrency()));
  const std::int64_t size = dtype_bytes(t.tensor->dtype);
  std::vector<std::thread> others;
  const auto draw = [&](std::int64_t part) {
    const std::int64_t begin = t.elements * part / parts, end = t.elements * (part + 1) / parts;
    draw_inputs(*t.tensor, index, seed, begin, end - begin, to + begin * size);
  };
  for (std::int64_t part = 1; part < parts; ++part) others.emplace_back(draw, part);
  draw(0);
  for (std::thread& other : others) other.join();
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

// Runs the reference on the inputs that lie in `buffers` and makes `round`'s poison vanish.
std::optional<Error> run_reference(CpuSession& session, const CpuCase& state,
                                   const CpuBuffers& buffers, std::uint64_t round, double timeout_s,
                                   double* seconds) {
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    const Shaped& t = state.tensors[i];
    if (!is_output(t)) continue;
    const DType dtype = is_floating(t.tensor->dtype) ? DType::kInt64 : t.tensor->dtype;
    fill_poison(make_poison(dtype, round), buffers.data(i), reference_bytes(t));
  }
  const double start = real_clock().now_s();
  const auto called = session.call({0, 1}, timeout_s, "running the reference");
  *seconds = real_clock().now_s() - start;
  const std::string where = "the reference of case " + state.c->name;
  if (const Outcome* outcome = std::get_if<Outcome>(&called)) {
    return Error{ErrorKind::kTask, where + " failed: " + reference_failure(*outcome),
                 "correct the task's reference.cpp"};
  }
  if (const auto broken = buffers.broken_canary()) {
    const Shaped& t = state.tensors[broken->slot];
    return Error{ErrorKind::kTask,
                 where + " " +
                     describe_stray("tensor " + t.tensor->name, reference_bytes(t),
                                    reference_bytes(t) / t.elements, broken->at, true),
                 "correct the task's reference.cpp"};
  }
  return std::nullopt;
}

// Draws and runs one set; the first set is run twice.
Result<InputSet> make_set(CpuSession& session, const CpuCase& state, const CpuBuffers& buffers,
                          std::uint64_t seed, bool twice, double timeout_s, double* seconds) {
  InputSet set;
  set.seed = seed;
  set.inputs.resize(state.tensors.size());
  set.expected.resize(state.tensors.size());
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    const Shaped& t = state.tensors[i];
    if (is_output(t)) continue;
    set.inputs[i].resize(static_cast<std::size_t>(t.bytes));
    draw_all(t, static_cast<int>(i), seed, set.inputs[i].data());
    std::memcpy(buffers.data(i), set.inputs[i].data(), set.inputs[i].size());
  }
  if (auto e = run_reference(session, state, buffers, seed, timeout_s, seconds)) {
    return tl::unexpected<Error>(*e);
  }
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    if (is_output(state.tensors[i])) {
      set.expected[i] = make_expected(state.tensors[i], buffers.data(i));
    }
  }
  if (!twice) return set;
  if (auto e = run_reference(session, state, buffers, seed + 1, timeout_s, seconds)) {
    return tl::unexpected<Error>(*e);
  }
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    const Shaped& t = state.tensors[i];
    if (!is_output(t)) continue;
    const std::int64_t at = disagreement(t, set.expected[i], buffers.data(i));
    if (at < 0) continue;
    return fail(
        ErrorKind::kTask,
        "the reference of case " + state.c->name +
            " disagrees with itself: two runs on the same inputs gave different values of " +
            t.tensor->name + " at " + coordinates(t.shape, at),
        "make reference.cpp write every output element, from the inputs alone");
  }
  return set;
}

std::vector<BufferSpec> buffer_specs(const std::vector<Shaped>& tensors, bool for_reference) {
  std::vector<BufferSpec> specs;
  for (const Shaped& t : tensors) {
    specs.push_back({is_output(t) && for_reference ? reference_bytes(t) : t.bytes, is_output(t)});
  }
  return specs;
}

}  // namespace

std::int64_t case_memory_bytes(const Task& task, const Case& c) {
  std::int64_t inputs = 0, outputs = 0, references = 0;
  for (const Shaped& t : shaped_tensors(task, c)) {
    (is_output(t) ? outputs : inputs) += t.bytes;
    references += is_output(t) ? reference_bytes(t) : 0;
  }
  const std::int64_t sets = static_cast<std::int64_t>(kInputSets);
  return (sets + 2) * inputs + outputs + (sets + 1) * references + workspace_bytes(task, c);
}

Result<CpuCase> make_cpu_case(const Task& task, const Case& c, const Binary& reference,
                              const std::string& worker, std::uint64_t seed, double timeout_s) {
  CpuCase state;
  state.c = &c;
  state.tensors = shaped_tensors(task, c);
  {
    Result<CpuBuffers> buffers = CpuBuffers::make(buffer_specs(state.tensors, true));
    if (!buffers) return tl::unexpected<Error>(buffers.error());
    SessionSettings settings;
    settings.worker = worker;
    Result<CpuSession::Started> session =
        CpuSession::start(settings, reference, state.tensors, *buffers, "loading the reference");
    if (!session) return tl::unexpected<Error>(session.error());
    if (const Outcome* outcome = std::get_if<Outcome>(&*session)) {
      return fail(ErrorKind::kTask,
                  "the reference of case " + c.name + " failed: " + reference_failure(*outcome),
                  "correct the task's reference.cpp");
    }
    CpuSession& running = *std::get<std::unique_ptr<CpuSession>>(*session);
    for (std::size_t k = 0; k < kInputSets; ++k) {
      Result<InputSet> set = make_set(running, state, *buffers, kp::mix64(seed + k), k == 0,
                                      timeout_s, &state.reference_seconds);
      if (!set) return tl::unexpected<Error>(set.error());
      state.sets.push_back(std::move(*set));
    }
  }
  std::vector<BufferSpec> specs = buffer_specs(state.tensors, false);
  if (const std::int64_t bytes = workspace_bytes(task, c); bytes > 0)
    specs.push_back({bytes, true});
  Result<CpuBuffers> buffers = CpuBuffers::make(specs);
  if (!buffers) return tl::unexpected<Error>(buffers.error());
  state.buffers = std::move(*buffers);
  return state;
}

namespace {
bool same(const Expected& a, const Expected& b) {
  return a.bytes == b.bytes && a.values.size() == b.values.size() &&
         (a.values.empty() ||
          std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(double)) == 0);
}

bool constant(const Shaped& t, const Expected& e) {
  if (t.elements < 2) return false;
  if (!e.values.empty()) {
    const double first = e.values.front();
    return std::all_of(e.values.begin(), e.values.end(), [&](double v) {
      return v == first || (std::isnan(v) && std::isnan(first));
    });
  }
  const std::size_t size = static_cast<std::size_t>(dtype_bytes(t.tensor->dtype));
  for (std::size_t at = size; at < e.bytes.size(); at += size) {
    if (std::memcmp(e.bytes.data(), e.bytes.data() + at, size) != 0) return false;
  }
  return true;
}
}  // namespace

std::string degenerate_output(const std::vector<CpuCase>& cases) {
  if (cases.empty()) return "";
  for (std::size_t i = 0; i < cases.front().tensors.size(); ++i) {
    if (!is_output(cases.front().tensors[i])) continue;
    bool always_constant = true, always_same = true;
    for (const CpuCase& state : cases) {
      for (const InputSet& set : state.sets) {
        always_constant = always_constant && constant(state.tensors[i], set.expected[i]);
        always_same = always_same && same(set.expected[i], state.sets.front().expected[i]);
      }
    }
    const std::string name = "output " + cases.front().tensors[i].tensor->name;
    if (always_constant) return name + " is constant: every element of it has the same value";
    if (always_same) return name + " does not depend on the inputs: different inputs give the same";
  }
  return "";
}

void load_inputs(const CpuCase& state, const InputSet& set) {
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    if (set.inputs[i].empty()) continue;
    std::memcpy(state.buffers.data(i), set.inputs[i].data(), set.inputs[i].size());
  }
}

void load_rotated(const CpuCase& state, const InputSet& set, std::uint64_t by) {
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    const std::vector<char>& from = set.inputs[i];
    if (from.empty()) continue;
    const std::uint64_t elements = static_cast<std::uint64_t>(state.tensors[i].elements);
    const std::size_t at = static_cast<std::size_t>(
        kp::mix64(by + i) % elements *
        static_cast<std::uint64_t>(dtype_bytes(state.tensors[i].tensor->dtype)));
    std::memcpy(state.buffers.data(i), from.data() + at, from.size() - at);
    std::memcpy(state.buffers.data(i) + (from.size() - at), from.data(), at);
  }
}

void poison_outputs(const CpuCase& state, std::uint64_t round, std::vector<Poison>* poisons) {
  poisons->assign(state.tensors.size(), Poison{});
  for (std::size_t i = 0; i < state.buffers.slots().size(); ++i) {
    const bool workspace = i >= state.tensors.size();
    if (!workspace && !is_output(state.tensors[i])) continue;
    const DType dtype = workspace ? DType::kFp32 : state.tensors[i].tensor->dtype;
    const Poison poison = make_poison(dtype, round + i);
    fill_poison(poison, state.buffers.data(i), state.buffers.slots()[i].bytes);
    if (!workspace) (*poisons)[i] = poison;
  }
}

std::optional<Outcome> judge_outputs(const CpuCase& state, const InputSet& set,
                                     const std::vector<Poison>& poisons, double* max_error) {
  if (const auto broken = state.buffers.broken_canary()) {
    const bool workspace = broken->slot >= state.tensors.size();
    const std::string name =
        workspace ? "the workspace" : "tensor " + state.tensors[broken->slot].tensor->name;
    const std::int64_t size =
        workspace ? 1 : dtype_bytes(state.tensors[broken->slot].tensor->dtype);
    return Crashed{"the kernel " +
                       describe_stray(name, state.buffers.slots()[broken->slot].bytes, size,
                                      broken->at, true) +
                       ", while checking case " + state.c->name,
                   ""};
  }
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    const Shaped& t = state.tensors[i];
    if (!is_output(t)) continue;
    const Comparison comparison = compare_output(t, state.buffers.data(i), set.expected[i]);
    const double tolerance = tolerance_of(*t.tensor);
    if (comparison.ok()) {
      if (tolerance > 0) *max_error = std::max(*max_error, comparison.worst / tolerance);
      continue;
    }
    const double error = std::isfinite(comparison.worst) ? comparison.worst : 1e300;
    return WrongResult{
        state.c->name, t.tensor->name,
        describe_mismatch(t, state.buffers.data(i), set.expected[i], comparison, poisons[i]), error,
        tolerance};
  }
  return std::nullopt;
}

}  // namespace kernelpro
