// SPDX-License-Identifier: Apache-2.0
#include "profile/code/asm_values.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string_view>

namespace kernelpro {

namespace {

using Kind = AsmOperand::Kind;

// Stack slots are places after the sixteen registers, numbered by displacement.
constexpr int kSlots = 1 << 24;
constexpr int kMaxChain = 24;

bool starts(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Only reads its first operand.
bool only_reads(std::string_view m) {
  return one_of(m, {"cmp", "test", "push", "nop", "bt"}) || is_jump(m) || is_call(m) ||
         is_return(m) || starts(m, "prefetch") || starts(m, "vcomis") || starts(m, "vucomis") ||
         starts(m, "comis") || starts(m, "ucomis");
}

// Larger numbers are not steps or offsets; sums of small ones do not overflow.
bool small(long long value) { return value > -(1ll << 40) && value < (1ll << 40); }

bool clobbered_by_call(int place) {
  return place == 0 || place == 1 || place == 2 || (place >= 6 && place <= 11);
}

bool is_parameter(int place) {
  return place == 7 || place == 6 || place == 2 || place == 1 || place == 8 || place == 9;
}

bool sets_flags(std::string_view m) {
  return one_of(m, {"cmp", "test", "add", "sub", "inc", "dec", "and", "or", "xor", "neg", "shl",
                    "sal", "shr", "sar"});
}

}  // namespace

AsmValues::AsmValues(const AsmFunction& function, const std::vector<Flow>& flow,
                     const std::vector<Loop>& loops, const std::vector<int>& owner, long* work)
    : function_(function), flow_(flow), loops_(loops), owner_(owner), work_(work) {
  const std::size_t count = function.code.size();
  previous_.resize(count);
  operands_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const AsmInstruction& instruction = function.code[i];
    operands_.push_back(asm_operands(instruction));
    frame_pointer_ =
        frame_pointer_ || (instruction.mnemonic == "mov" && instruction.operands == "rbp,rsp");
    if (flow[i].falls_through && i + 1 < count) previous_[i + 1].push_back(static_cast<int>(i));
    if (flow[i].target >= 0) previous_[at(flow[i].target)].push_back(static_cast<int>(i));
  }
}

int AsmValues::slot(const AsmOperand& operand) const {
  if (operand.kind != Kind::kMemory || operand.index >= 0) return -1;
  const bool frame = operand.base == kRsp || (operand.base == kRbp && frame_pointer_);
  if (!frame || operand.value >= kSlots / 4 || operand.value <= -kSlots / 4) return -1;
  return 16 + kSlots / 4 + static_cast<int>(operand.value) + (operand.base == kRbp ? kSlots : 0);
}

bool AsmValues::writes(int i, int place) const {
  const std::string_view m = function_.code[at(i)].mnemonic;
  if (is_call(m)) return clobbered_by_call(place);
  const std::vector<AsmOperand>& ops = operands(i);
  if ((m == "div" || m == "idiv" || m == "cqo" || m == "cdq" || m == "cdqe" ||
       ((m == "mul" || m == "imul") && ops.size() == 1)) &&
      (place == 0 || (place == 2 && m != "cdqe"))) {
    return true;
  }
  if (ops.empty() || only_reads(m)) return false;
  if (m == "xchg" && ops.size() == 2) {  // of a register with itself: padding
    return ops[0].reg != ops[1].reg && (ops[0].reg == place || ops[1].reg == place);
  }
  return ops[0].kind == Kind::kRegister ? ops[0].reg == place : slot(ops[0]) == place;
}

// Is it an edge back to the header of a loop that holds instruction `inside`?
bool AsmValues::jumps_back(int from, int to, int inside) const {
  for (int l = owner_[at(inside)]; l >= 0; l = loops_[at(l)].parent) {
    const Loop& loop = loops_[at(l)];
    const bool entry =
        std::find(loop.entries.begin(), loop.entries.end(), to) != loop.entries.end();
    if (entry && std::binary_search(loop.body.begin(), loop.body.end(), from)) {
      return true;
    }
  }
  return false;
}

// Instructions that may have been the last to write `place` before `i`.
std::set<int> AsmValues::reaching(int i, int place, bool* entry) const {
  std::set<int> found;
  std::set<int> seen;
  std::vector<int> queue{i};
  while (!queue.empty() && *work_ > 0) {
    const int here = queue.back();
    queue.pop_back();
    if (here == 0) *entry = true;
    for (const int p : previous_[at(here)]) {
      --*work_;
      if (jumps_back(p, here, i) || !seen.insert(p).second) continue;
      if (writes(p, place)) {
        found.insert(p);
      } else {
        queue.push_back(p);
      }
    }
  }
  return found;
}

// The places from which instruction `i` computes `place`; records the kind of value in `origin`.
std::vector<int> AsmValues::sources(int i, int place, ValueOrigin* origin) const {
  const std::string_view m = function_.code[at(i)].mnemonic;
  const std::vector<AsmOperand>& ops = operands(i);
  if (m == "cdqe") return {0};
  if (is_call(m) || ops.empty()) return {};
  std::vector<int> from;
  const auto read = [&](const AsmOperand& operand) {
    if (operand.kind == Kind::kRegister) from.push_back(operand.reg);
    if (slot(operand) >= 0) from.push_back(slot(operand));
  };
  if (m == "lea" && ops.size() == 2) {
    if (ops[1].base == kRsp || (ops[1].base == kRbp && frame_pointer_)) origin->stack = true;
    for (const int reg : {ops[1].base, ops[1].index}) {
      if (reg >= 0 && reg != kRsp) from.push_back(reg);
    }
  } else if (starts(m, "mov") || starts(m, "cmov")) {
    if (starts(m, "cmov")) from.push_back(place);
    if (ops.size() == 2) {
      if (ops[1].reg == kRsp)
        origin->stack = true;
      else
        read(ops[1]);
    }
  } else if (one_of(m, {"add", "sub", "and", "or", "imul", "inc", "dec", "neg", "not", "shl", "sal",
                        "shr", "sar", "sarx", "shrx", "shlx", "andn"})) {
    if (m == "and" && ops.size() == 2 && ops[1].kind == Kind::kImmediate && place != kRsp) {
      // 0xfffffff0 rounds down to 16, 0xf gives the remainder.
      const long long mask = small(ops[1].value) ? ops[1].value : 0;
      const long long multiple = mask < 0 ? -mask : mask + 1;
      if (std::has_single_bit(static_cast<unsigned long long>(multiple))) {
        origin->multiple = std::max(origin->multiple, multiple);
      }
    }
    if ((m == "shr" || m == "sar") && ops.size() == 2 && ops[1].kind == Kind::kImmediate &&
        ops[1].value >= 2 && ops[1].value < 16) {
      origin->multiple = std::max(origin->multiple, 1ll << ops[1].value);
    }
    if (ops.size() < 3) from.push_back(place);
    for (std::size_t o = 1; o < ops.size(); ++o) read(ops[o]);
  }
  return from;
}

ValueOrigin AsmValues::origin(int i, int place) const {
  ValueOrigin origin;
  std::set<std::pair<int, int>> seen{{i, place}};
  std::vector<std::pair<int, int>> queue{{i, place}};
  while (!queue.empty() && *work_ > 0) {
    const auto [here, what] = queue.back();
    queue.pop_back();
    bool entry = false;
    for (const int definition : reaching(here, what, &entry)) {
      origin.definitions.insert(definition);
      for (const int source : sources(definition, what, &origin)) {
        if (seen.insert({definition, source}).second) queue.push_back({definition, source});
      }
    }
    if (entry && is_parameter(what)) origin.parameters.insert(what);
  }
  return origin;
}

AsmValues::Known AsmValues::known(int i, int place, int depth) const {
  bool entry = false;
  Known value{reaching(i, place, &entry), place, 0};
  if (entry || value.root.size() != 1 || depth >= kMaxChain) {
    if (entry) value.root.insert(-1);
    return value;
  }
  const int definition = *value.root.begin();
  const std::string_view m = function_.code[at(definition)].mnemonic;
  const std::vector<AsmOperand>& ops = operands(definition);
  const auto from = [&](int source, long long add) {
    Known k = known(definition, source, depth + 1);
    k.offset += add;
    return k;
  };
  if (ops.size() != 2 || !small(ops[1].value)) return value;
  const AsmOperand& right = ops[1];
  const bool immediate = right.kind == Kind::kImmediate;
  if (m == "xor" && right.reg == place && right.kind == Kind::kRegister) return {{}, -1, 0};
  // Addresses in the stack frame, which does not move while a loop runs.
  const int frame = right.kind == Kind::kRegister ? right.reg : right.base;
  if (right.index < 0 && (frame == kRsp || (frame == kRbp && frame_pointer_))) {
    if (m == "lea") return {{}, frame, right.value};
    if (m == "mov" && right.kind == Kind::kRegister) return {{}, frame, 0};
  }
  if (m == "mov" || m == "movsxd") {
    if (immediate) return {{}, -1, right.value};
    if (right.kind == Kind::kRegister) return from(right.reg, 0);
    if (slot(right) >= 0) return from(slot(right), 0);
  }
  if (m == "lea" && right.index < 0 && right.base >= 0 && right.base != kRsp) {
    return from(right.base, right.value);
  }
  if (m == "add" && immediate) return from(place, right.value);
  if (m == "sub" && immediate) return from(place, -right.value);
  return value;
}

std::optional<double> AsmValues::trips(const Loop& loop, const std::vector<int>& own,
                                       const std::map<int, long long>& steps) const {
  std::optional<double> fewest;
  for (std::size_t o = 1; o < own.size(); ++o) {
    const std::string_view jump = function_.code[at(own[o])].mnemonic;
    if (!is_jump(jump) || jump == "jmp" || own[o] != own[o - 1] + 1) continue;
    const int test = own[o - 1];
    const std::string_view m = function_.code[at(test)].mnemonic;
    const std::vector<AsmOperand>& ops = operands(test);
    if (!sets_flags(m) || ops.empty()) continue;
    const bool compares = m == "cmp" && ops.size() == 2;
    for (const bool swapped : {false, true}) {
      if (swapped && !compares) break;
      const AsmOperand& mover = ops[swapped ? 1 : 0];
      if (mover.kind != Kind::kRegister || !steps.contains(mover.reg)) continue;
      const long long step = steps.at(mover.reg);
      const Known first = known(loop.header, mover.reg, 0);
      Known last{{}, -1, 0};
      if (compares) {
        const AsmOperand& bound = ops[swapped ? 0 : 1];
        if (bound.kind == Kind::kImmediate && small(bound.value))
          last.offset = bound.value;
        else if (bound.kind == Kind::kRegister && !steps.contains(bound.reg))
          last = known(loop.header, bound.reg, 0);
        else
          continue;
      }
      if (first.root != last.root || first.place != last.place) continue;
      const double count =
          static_cast<double>(last.offset - first.offset) / static_cast<double>(step);
      if (count > 0 && count < 1e12) fewest = std::min(fewest.value_or(count), count);
    }
  }
  return fewest;
}

Induction AsmValues::induction(const Loop& loop, const std::vector<int>& own) const {
  Induction result;
  std::set<int> other;  // registers that change in another way
  for (const int i : loop.body) {
    const std::string_view m = function_.code[at(i)].mnemonic;
    const std::vector<AsmOperand>& ops = operands(i);
    if (is_call(m)) {
      for (int r = 0; r < 16; ++r) {
        if (clobbered_by_call(r)) other.insert(r);
      }
    }
    if (ops.empty() || ops[0].kind != Kind::kRegister || only_reads(m)) continue;
    const int reg = ops[0].reg;
    long long step = 0;
    if (m == "inc") step = 1;
    if (m == "dec") step = -1;
    if (ops.size() == 2 && ops[1].kind == Kind::kImmediate && small(ops[1].value)) {
      if (m == "add") step = ops[1].value;
      if (m == "sub") step = -ops[1].value;
    }
    if (m == "lea" && ops.size() == 2 && ops[1].base == reg && ops[1].index < 0 &&
        small(ops[1].value)) {
      step = ops[1].value;
    }
    if (step != 0 && std::binary_search(own.begin(), own.end(), i)) {
      result.steps[reg] += step;
    } else {
      other.insert(reg);
    }
  }
  for (const int reg : other) result.steps.erase(reg);
  std::erase_if(result.steps, [](const auto& each) { return each.second == 0; });
  for (const int i : own) {
    if (function_.code[at(i)].mnemonic == "lea" || function_.code[at(i)].mnemonic == "nop")
      continue;
    for (const AsmOperand& operand : operands(i)) {
      if (operand.kind != Kind::kMemory) continue;
      const auto step = [&](int reg) {
        const auto found = result.steps.find(reg);
        return found == result.steps.end() ? 0 : found->second;
      };
      for (const int reg : {operand.base, operand.index}) {
        const bool changes = other.contains(reg) || result.steps.contains(reg);
        if (reg >= 0 && reg != kRsp && !changes) result.bases.insert(reg);
      }
      const long long bytes = std::llabs(step(operand.base) + operand.scale * step(operand.index));
      if (bytes == 0) continue;
      result.advance = result.advance == 0 ? bytes : std::min(result.advance, bytes);
    }
  }
  result.trips = trips(loop, own, result.steps);
  return result;
}

std::vector<bool> AsmValues::after(int from, const std::vector<int>& barriers) const {
  std::vector<bool> seen(function_.code.size(), false);
  std::vector<int> queue{from};
  const auto visit = [&](int i) {
    if (i < 0 || at(i) >= seen.size() || seen[at(i)]) return;
    if (std::find(barriers.begin(), barriers.end(), i) != barriers.end()) return;
    seen[at(i)] = true;
    queue.push_back(i);
  };
  while (!queue.empty() && --*work_ > 0) {
    const int here = queue.back();
    queue.pop_back();
    if (flow_[at(here)].falls_through) visit(here + 1);
    visit(flow_[at(here)].target);
  }
  return seen;
}

bool AsmValues::only_stack(const std::vector<int>& own) const {
  for (const int i : own) {
    const std::string_view m = function_.code[at(i)].mnemonic;
    if (m == "lea" || m == "nop") continue;
    for (const AsmOperand& operand : operands(i)) {
      if (operand.kind != Kind::kMemory || operand.rip) continue;
      const bool frame = operand.base == kRsp || (operand.base == kRbp && frame_pointer_);
      if (!frame) return false;
    }
  }
  return true;
}

}  // namespace kernelpro
