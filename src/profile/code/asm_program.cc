// SPDX-License-Identifier: Apache-2.0
#include "profile/code/asm_program.h"

#include <algorithm>

#include "base/text.h"

namespace kernelpro {

namespace {

// Loops with unknown bounds are assumed to cover this many bytes: 1024 floats. An estimate; tensor
// rows have hundreds to thousands of elements.
constexpr double kRangeBytes = 4096;
constexpr double kMostRange = 1e7;
constexpr double kMostRuns = 1e24;
// A call to a math function counts as this many instructions.
constexpr double kCallInstructions = 24;
constexpr std::size_t kMaxRegions = 600;  // beyond this, the lightest are dropped
constexpr long kMaxWork = 30'000'000;     // data-flow steps

std::size_t at(int i) { return static_cast<std::size_t>(i); }

// Calls to functions that throw or end the process.
bool never_returns(const AsmInstruction& instruction) {
  if (!is_call(instruction.mnemonic)) return false;
  const std::string_view name = asm_reference(instruction.operands).symbol;
  return contains(name, "_Unwind_Resume") || contains(name, "__throw") ||
         contains(name, "__cxa_rethrow") || contains(name, "terminate") || contains(name, "abort");
}

std::vector<Flow> flow_of(const AsmFunction& function) {
  std::map<unsigned long long, int> index;
  for (std::size_t i = 0; i < function.code.size(); ++i) {
    index[function.code[i].address] = static_cast<int>(i);
  }
  std::vector<Flow> flow(function.code.size());
  for (std::size_t i = 0; i < function.code.size(); ++i) {
    const AsmInstruction& instruction = function.code[i];
    if (is_return(instruction.mnemonic) || never_returns(instruction)) {
      flow[i].falls_through = false;
    }
    const bool loop = instruction.mnemonic.substr(0, 4) == "loop";
    if (!is_jump(instruction.mnemonic) && !loop) continue;
    if (instruction.mnemonic == "jmp") flow[i].falls_through = false;
    const AsmReference to = asm_reference(instruction.operands);
    // An indirect jump has a memory operand.
    if (!to.valid || contains(instruction.operands, "[")) continue;
    const auto found = index.find(to.address);
    if (found != index.end()) flow[i].target = found->second;
  }
  return flow;
}

bool is_store(const std::vector<AsmOperand>& operands, std::string_view mnemonic) {
  if (mnemonic.substr(0, 1) == "v") mnemonic.remove_prefix(1);
  if (mnemonic.substr(0, 3) != "mov" || operands.empty()) return false;
  const AsmOperand& to = operands[0];
  return to.kind == AsmOperand::Kind::kMemory && to.base != kRsp && to.base != kRbp;
}

bool is_root(const std::string& name) {
  return name == "launch" || contains(name, "_M_run") || contains(name, "_M_invoke");
}

std::vector<int> own_code(const AsmRoutine& a, int loop) {
  std::vector<int> own;
  if (loop < 0) {
    for (const int i : reachable(a.flow)) {
      if (a.owner[at(i)] < 0) own.push_back(i);
    }
    return own;
  }
  for (const int i : a.loops[at(loop)].body) {
    if (a.owner[at(i)] == loop) own.push_back(i);
  }
  return own;
}

// The range assumed for innermost loops with unknown bounds: that of the longest known one.
double range_of(const AsmRoutine& a) {
  double range = kRangeBytes;
  for (std::size_t l = 0; l < a.loops.size(); ++l) {
    const double bytes = static_cast<double>(a.steps[l].advance);
    if (!a.loops[l].innermost || !a.steps[l].trips || bytes > kRangeBytes / 4) continue;
    range = std::max(range, *a.steps[l].trips * bytes);
  }
  return std::min(range, kMostRange);
}

void count(const AsmInstruction& instruction, const std::vector<AsmOperand>& operands,
           AsmRegion* r) {
  const Arithmetic a = arithmetic(instruction.mnemonic);
  const Fp call = math_call(instruction);
  r->packed += (a.kind == Fp::kPacked) + kCallWork * (call == Fp::kPacked);
  r->scalar += (a.kind == Fp::kScalar) + kCallWork * (call == Fp::kScalar);
  r->math += call != Fp::kNone;
  r->integer += is_packed_integer(instruction.mnemonic);
  r->stores = r->stores || is_store(operands, instruction.mnemonic);
  if (a.kind == Fp::kPacked) r->bits = std::max(r->bits, vector_bits(instruction.operands));
  if (a.kind != Fp::kNone) r->operations.insert(a.operation);
}

}  // namespace

AsmProgram::AsmProgram(const std::vector<AsmFunction>& functions)
    : functions_(functions), work_(kMaxWork) {
  routines_.resize(functions.size());
  for (std::size_t f = 0; f < functions.size(); ++f) {
    if (!functions[f].code.empty()) by_address_[functions[f].code[0].address] = f;
    by_name_[functions[f].name] = f;
  }
  walk_calls();
  for (std::size_t f = 0; f < functions.size(); ++f) add_regions(f);
  if (regions_.size() > kMaxRegions) {
    std::nth_element(regions_.begin(), regions_.begin() + kMaxRegions, regions_.end(),
                     [](const AsmRegion& a, const AsmRegion& b) { return a.weight > b.weight; });
    regions_.resize(kMaxRegions);
    std::stable_sort(regions_.begin(), regions_.end(), [](const AsmRegion& a, const AsmRegion& b) {
      return a.function < b.function;
    });
  }
}

const Loop* AsmProgram::loop_of(const AsmRegion& region) const {
  return region.loop < 0 ? nullptr : &routines_[region.function].loops[at(region.loop)];
}

// Finds control flow, loops and their steps; only on the first call.
void AsmProgram::analyse(std::size_t f) {
  AsmRoutine& a = routines_[f];
  if (a.values) return;
  a.flow = flow_of(functions_[f]);
  for (const AsmInstruction& instruction : functions_[f].code) {
    const Arithmetic done = arithmetic(instruction.mnemonic);
    if (done.kind == Fp::kPacked) a.packed.insert(done.operation);
  }
  a.loops = find_loops(a.flow);
  a.owner.assign(a.flow.size(), -1);
  std::vector<int> depth(a.flow.size(), 0);
  for (std::size_t l = 0; l < a.loops.size(); ++l) {
    for (const int i : a.loops[l].body) {
      if (a.loops[l].depth <= depth[at(i)]) continue;
      depth[at(i)] = a.loops[l].depth;
      a.owner[at(i)] = static_cast<int>(l);
    }
  }
  a.values.emplace(functions_[f], a.flow, a.loops, a.owner, &work_);
  for (std::size_t l = 0; l < a.loops.size(); ++l) {
    a.steps.push_back(a.values->induction(a.loops[l], own_code(a, static_cast<int>(l))));
  }
  const double range = range_of(a);
  for (std::size_t l = 0; l < a.loops.size(); ++l) {
    a.trips.push_back(trips(f, own_code(a, static_cast<int>(l)), a.steps[l], range));
  }
}

double AsmProgram::trips(std::size_t f, const std::vector<int>& own, const Induction& induction,
                         double range) const {
  if (induction.trips) return std::max(1.0, *induction.trips);
  double bytes = 4;
  for (const int i : own) {
    const AsmInstruction& instruction = functions_[f].code[at(i)];
    if (arithmetic(instruction.mnemonic).kind == Fp::kPacked) {
      bytes = std::max(bytes, vector_bits(instruction.operands) / 8.0);
    }
  }
  // Steps of whole rows do not reveal the loop's length.
  if (induction.advance > 0 && static_cast<double>(induction.advance) <= kRangeBytes / 4) {
    bytes = static_cast<double>(induction.advance);
  }
  return std::max(1.0, range / bytes);
}

double AsmProgram::runs(std::size_t f, int loop) const {
  double product = routines_[f].runs;
  for (int l = loop; l >= 0; l = routines_[f].loops[at(l)].parent) {
    product *= routines_[f].trips[at(l)];
  }
  return std::min(product, kMostRuns);
}

void AsmProgram::walk_calls() {
  std::vector<std::size_t> queue;
  std::vector<int> visits(functions_.size(), 0);
  const auto reach = [&](std::size_t f, double runs) {
    if (routines_[f].runs >= runs || ++visits[f] > 8) return;
    analyse(f);
    routines_[f].runs = runs;
    queue.push_back(f);
  };
  for (std::size_t f = 0; f < functions_.size(); ++f) {
    if (is_root(functions_[f].name)) reach(f, 1);
  }
  if (queue.empty()) {  // stripped, or not a candidate: look at everything
    for (std::size_t f = 0; f < functions_.size(); ++f) reach(f, 1);
  }
  while (!queue.empty()) {
    const std::size_t f = queue.back();
    queue.pop_back();
    for (std::size_t i = 0; i < functions_[f].code.size(); ++i) {
      const AsmReference to = asm_reference(functions_[f].code[i].operands);
      if (!to.valid) continue;
      const std::optional<std::size_t> callee = function_at(to);
      if (!callee || *callee == f || functions_[*callee].name.ends_with(".cold")) continue;
      if (visits[*callee] == 0 || routines_[*callee].callers.size() < 16) {
        routines_[*callee].callers.push_back({f, static_cast<int>(i)});
      }
      reach(*callee, runs(f, routines_[f].owner[i]));
    }
  }
}

// Global functions of the same object are called through the PLT, by name.
std::optional<std::size_t> AsmProgram::function_at(const AsmReference& to) const {
  const auto direct = by_address_.find(to.address);
  if (direct != by_address_.end()) return direct->second;
  constexpr std::string_view kPlt = "@plt";
  if (!to.symbol.ends_with(kPlt)) return std::nullopt;
  const auto named = by_name_.find(to.symbol.substr(0, to.symbol.size() - kPlt.size()));
  return named == by_name_.end() ? std::nullopt : std::optional(named->second);
}

void AsmProgram::add_regions(std::size_t f) {
  const AsmRoutine& a = routines_[f];
  if (a.runs == 0) return;
  for (int l = -1; l < static_cast<int>(a.loops.size()); ++l) {
    AsmRegion r;
    r.function = f;
    r.loop = l;
    r.own = own_code(a, l);
    if (l >= 0) r.induction = a.steps[at(l)];
    r.stack = a.values->only_stack(r.own);
    for (const int i : r.own) count(functions_[f].code[at(i)], a.values->operands(i), &r);
    r.weight = runs(f, l) * (static_cast<double>(r.own.size()) + kCallInstructions * r.math);
    regions_.push_back(std::move(r));
  }
}

}  // namespace kernelpro
