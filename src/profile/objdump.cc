// SPDX-License-Identifier: Apache-2.0
#include "profile/objdump.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"
#include "profile/loops.h"

namespace kernelpro {

namespace {

constexpr std::size_t kMaxInstructions = 400'000;  // of a whole file
constexpr int kMaxDepth = 8;
// A level of nesting outweighs this much work in one iteration. An estimate: inner loops of
// kernels run tens of iterations or more.
constexpr double kDepthFactor = 64;
// Loops with this share of the heaviest one's weight are hot as well.
constexpr double kHotShare = 0.2;
// A call from an inner loop (expf, most often) stands for this many scalar operations.
constexpr int kCallWork = 8;
// A packed loop with this much arithmetic is a main loop wherever its remainders are.
constexpr int kLargePacked = 8;
constexpr std::size_t kMaxText = 6000;

bool starts(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool parse_hex(std::string_view text, unsigned long long* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value, 16);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool is_prefix(std::string_view word) {
  static const std::set<std::string_view> prefixes = {"bnd",   "notrack", "rep",      "repz",
                                                      "repnz", "lock",    "data16",   "cs",
                                                      "ds",    "es",      "xacquire", "xrelease"};
  return prefixes.count(word) > 0;
}

// "    1150:\tvmulps ymm0,ymm1,ymm2"
bool parse_instruction(std::string_view line, AsmInstruction* instruction) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return false;
  if (!parse_hex(trim(line.substr(0, colon)), &instruction->address)) return false;
  std::string_view rest = trim(line.substr(colon + 1));
  for (;;) {
    const std::size_t end = std::min(rest.find_first_of(" \t"), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest = trim(rest.substr(end));
    if (is_prefix(word) && !rest.empty()) continue;
    instruction->mnemonic = word;
    instruction->operands = rest;
    return !word.empty();
  }
}

enum class Fp { kNone, kPacked, kScalar };

struct Arithmetic {
  Fp kind = Fp::kNone;
  std::string_view operation;  // "add", "fmadd": equal for packed and scalar forms
};

// Arithmetic only: moves, shuffles, compares, logic and conversions do no floating-point work.
Arithmetic arithmetic(std::string_view mnemonic) {
  static constexpr std::string_view kX87[] = {"fadd",  "faddp", "fsub",  "fsubp", "fsubr", "fsubrp",
                                              "fmul",  "fmulp", "fdiv",  "fdivp", "fdivr", "fdivrp",
                                              "fsqrt", "f2xm1", "fyl2x", "fsin",  "fcos"};
  for (const std::string_view x87 : kX87) {
    if (mnemonic == x87) return {Fp::kScalar, x87.substr(0, 4)};
  }
  std::string_view name = mnemonic;
  if (!name.empty() && name[0] == 'v') name.remove_prefix(1);
  if (starts(name, "dpbf16ps")) return {Fp::kPacked, "fmadd"};
  if (name.size() < 5) return {};
  const std::string_view suffix = name.substr(name.size() - 2);
  const bool packed = suffix == "ps" || suffix == "pd" || suffix == "ph";
  if (!packed && suffix != "ss" && suffix != "sd" && suffix != "sh") return {};
  name.remove_suffix(2);
  static constexpr std::string_view kOperations[] = {
      "fmaddsub", "fmsubadd", "fmadd",   "fmsub", "fnmadd", "fnmsub", "addsub", "hadd", "hsub",
      "add",      "sub",      "mul",     "div",   "sqrt",   "rsqrt",  "rcp",    "max",  "min",
      "scalef",   "getexp",   "getmant", "dp",    "exp2",   "fmul",   "fcmul"};
  for (const std::string_view operation : kOperations) {
    if (!starts(name, operation)) continue;
    const std::string_view tail = name.substr(operation.size());
    if (tail.find_first_not_of("0123456789") != std::string_view::npos) continue;
    return {packed ? Fp::kPacked : Fp::kScalar, operation};
  }
  return {};
}

int register_bits(std::string_view operands) {
  if (contains(operands, "zmm")) return 512;
  if (contains(operands, "ymm")) return 256;
  return 128;
}

bool is_store(const AsmInstruction& i) {
  const std::string_view name = i.mnemonic;
  const std::size_t mov = name.substr(0, 1) == "v" ? 1 : 0;
  if (!starts(name.substr(mov), "mov")) return false;
  const std::size_t comma = i.operands.find(',');
  const std::size_t bracket = i.operands.find('[');
  if (bracket == std::string::npos || comma == std::string::npos || bracket > comma) return false;
  // Spills to the stack are no output.
  const std::string_view base = std::string_view(i.operands).substr(bracket + 1, 3);
  return base != "rsp" && base != "rbp";
}

// Does the function keep its frame's address in rbp? Else that is a register like any other.
bool has_frame_pointer(const AsmFunction& function) {
  return std::any_of(function.code.begin(), function.code.end(), [](const AsmInstruction& i) {
    return i.mnemonic == "mov" && i.operands == "rbp,rsp";
  });
}

// Reads or writes memory that is neither in the stack frame nor a constant of the code.
bool touches_data(const AsmInstruction& i, bool frame_pointer) {
  const std::size_t bracket = i.operands.find('[');
  if (bracket == std::string::npos || i.mnemonic == "lea" || i.mnemonic == "nop") return false;
  const std::string_view base = std::string_view(i.operands).substr(bracket + 1, 3);
  return base != "rsp" && base != "rip" && !(base == "rbp" && frame_pointer);
}

// The address and the symbol of a direct jump, call or `lea`: "1150 <launch+0x20>".
struct Reference {
  bool valid = false;
  unsigned long long address = 0;
  std::string_view symbol;  // without "+0x20"
};
Reference reference(std::string_view operands) {
  Reference r;
  const std::size_t open = operands.rfind('<');
  const std::size_t close = operands.rfind('>');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return r;
  std::string_view before = trim(operands.substr(0, open));
  const std::size_t space = before.find_last_of(" \t#");
  if (space != std::string_view::npos) before = before.substr(space + 1);
  r.valid = parse_hex(before, &r.address);
  r.symbol = operands.substr(open + 1, close - open - 1);
  const std::size_t plus = r.symbol.rfind("+0x");
  if (plus != std::string_view::npos) r.symbol = r.symbol.substr(0, plus);
  return r;
}

bool is_streaming_store(std::string_view m) {
  if (starts(m, "v")) m.remove_prefix(1);
  return starts(m, "movnt") && m != "movntdqa";
}

bool is_return(std::string_view m) { return starts(m, "ret") || m == "ud2" || m == "hlt"; }
bool is_jump(std::string_view m) { return !m.empty() && m[0] == 'j'; }
bool is_call(std::string_view m) { return starts(m, "call"); }

std::vector<Flow> flow_of(const AsmFunction& function) {
  std::map<unsigned long long, int> index;
  for (std::size_t i = 0; i < function.code.size(); ++i) {
    index[function.code[i].address] = static_cast<int>(i);
  }
  std::vector<Flow> flow(function.code.size());
  for (std::size_t i = 0; i < function.code.size(); ++i) {
    const AsmInstruction& instruction = function.code[i];
    if (is_return(instruction.mnemonic)) flow[i].falls_through = false;
    if (!is_jump(instruction.mnemonic) && !starts(instruction.mnemonic, "loop")) continue;
    if (instruction.mnemonic == "jmp") flow[i].falls_through = false;
    const Reference to = reference(instruction.operands);
    // An indirect jump shows a memory operand.
    if (!to.valid || contains(instruction.operands, "[")) continue;
    const auto found = index.find(to.address);
    if (found != index.end()) flow[i].target = found->second;
  }
  return flow;
}

struct HotCandidate {
  const AsmFunction* function = nullptr;
  const std::vector<int>* work = nullptr;
  int parent = -1;
  int depth = 0;  // loops around the call sites included
  int packed = 0, scalar = 0, calls = 0, bits = 0;
  bool stores = false;
  bool data = false;  // memory other than the stack frame and constants
  std::set<std::string_view> operations;
  double weight = 0;
};

struct Analysed {
  std::vector<Loop> loops;
  std::vector<std::vector<int>> own;  // by loop: its instructions that are in no inner loop
  std::vector<int> depth;             // by instruction
  bool frame_pointer = false;         // rbp holds the address of its stack frame
  int base_depth = -1;                // deepest nesting that it is called from; -1: not reached
};

Analysed analyse(const AsmFunction& function) {
  Analysed a;
  a.frame_pointer = has_frame_pointer(function);
  a.loops = find_loops(flow_of(function));
  a.own.resize(a.loops.size());
  a.depth.assign(function.code.size(), 0);
  std::vector<int> owner(function.code.size(), -1);
  for (std::size_t l = 0; l < a.loops.size(); ++l) {
    for (const int i : a.loops[l].body) {
      const auto at = static_cast<std::size_t>(i);
      if (a.loops[l].depth <= a.depth[at]) continue;
      a.depth[at] = a.loops[l].depth;
      owner[at] = static_cast<int>(l);
    }
  }
  for (std::size_t i = 0; i < owner.size(); ++i) {
    if (owner[i] >= 0) a.own[static_cast<std::size_t>(owner[i])].push_back(static_cast<int>(i));
  }
  return a;
}

class Analysis {
 public:
  explicit Analysis(const std::vector<AsmFunction>& functions) : functions_(functions) {
    analysed_.resize(functions.size());
    for (std::size_t f = 0; f < functions.size(); ++f) {
      if (!functions[f].code.empty()) by_address_[functions[f].code[0].address] = f;
      by_name_[functions[f].name] = f;
      analysed_[f] = analyse(functions[f]);
    }
    walk_calls();
  }

  AsmMix mix() {
    std::vector<HotCandidate> loops = candidates();
    drop_remainders(&loops);
    weigh(&loops);
    AsmMix mix;
    for (const HotCandidate& c : loops) {
      add(*c.function, *c.work, &mix);
      ++mix.loops;
    }
    if (loops.empty()) {
      for (std::size_t f = 0; f < functions_.size(); ++f) {
        if (analysed_[f].base_depth < 0) continue;
        add(functions_[f], reachable(flow_of(functions_[f])), &mix);
      }
    }
    for (std::size_t f = 0; f < functions_.size(); ++f) {
      if (analysed_[f].base_depth < 0) continue;
      for (const AsmInstruction& i : functions_[f].code) {
        mix.streaming_stores += is_streaming_store(i.mnemonic);
      }
    }
    mix.text = clip(mix.text, kMaxText);
    return mix;
  }

 private:
  bool is_root(const std::string& name) const {
    return name == "launch" || contains(name, "_M_run") || contains(name, "_M_invoke");
  }

  void walk_calls() {
    std::vector<std::size_t> queue;
    const auto reach = [&](std::size_t f, int depth) {
      depth = std::min(depth, kMaxDepth);
      if (analysed_[f].base_depth >= depth) return;
      analysed_[f].base_depth = depth;
      queue.push_back(f);
    };
    for (std::size_t f = 0; f < functions_.size(); ++f) {
      if (is_root(functions_[f].name)) reach(f, 0);
    }
    if (queue.empty()) {  // stripped, or not a candidate: look at everything
      for (std::size_t f = 0; f < functions_.size(); ++f) reach(f, 0);
    }
    while (!queue.empty()) {
      const std::size_t f = queue.back();
      queue.pop_back();
      for (std::size_t i = 0; i < functions_[f].code.size(); ++i) {
        const Reference to = reference(functions_[f].code[i].operands);
        if (!to.valid) continue;
        const std::optional<std::size_t> callee = function_at(to);
        if (!callee || *callee == f) continue;
        reach(*callee, analysed_[f].base_depth + analysed_[f].depth[i]);
      }
    }
  }

  // A global function of the same object is called through the PLT, by its name.
  std::optional<std::size_t> function_at(const Reference& to) const {
    const auto direct = by_address_.find(to.address);
    if (direct != by_address_.end()) return direct->second;
    constexpr std::string_view kPlt = "@plt";
    if (!to.symbol.ends_with(kPlt)) return std::nullopt;
    const auto named = by_name_.find(to.symbol.substr(0, to.symbol.size() - kPlt.size()));
    return named == by_name_.end() ? std::nullopt : std::optional(named->second);
  }

  std::vector<HotCandidate> candidates() const {
    std::vector<HotCandidate> result;
    bool any_fp = false;
    for (std::size_t f = 0; f < functions_.size(); ++f) {
      if (analysed_[f].base_depth < 0) continue;
      for (std::size_t l = 0; l < analysed_[f].loops.size(); ++l) {
        const Loop& loop = analysed_[f].loops[l];
        HotCandidate c =
            measure(functions_[f], loop, analysed_[f].own[l], analysed_[f].frame_pointer);
        c.depth = std::min(analysed_[f].base_depth + loop.depth, 2 * kMaxDepth);
        if (c.packed + c.scalar == 0 && !loop.innermost) continue;
        any_fp = any_fp || c.packed + c.scalar > 0;
        result.push_back(std::move(c));
      }
    }
    if (any_fp) {
      result.erase(std::remove_if(result.begin(), result.end(),
                                  [](const HotCandidate& c) { return c.packed + c.scalar == 0; }),
                   result.end());
    }
    return result;
  }

  static HotCandidate measure(const AsmFunction& function, const Loop& loop,
                              const std::vector<int>& work, bool frame_pointer) {
    HotCandidate c;
    c.work = &work;
    c.function = &function;
    c.parent = loop.parent;
    for (const int i : work) {
      const AsmInstruction& instruction = function.code[static_cast<std::size_t>(i)];
      const Arithmetic a = arithmetic(instruction.mnemonic);
      c.data = c.data || touches_data(instruction, frame_pointer);
      c.packed += a.kind == Fp::kPacked;
      c.scalar += a.kind == Fp::kScalar;
      c.calls += is_call(instruction.mnemonic);
      c.stores = c.stores || is_store(instruction);
      if (a.kind == Fp::kPacked) c.bits = std::max(c.bits, register_bits(instruction.operands));
      if (a.kind != Fp::kNone) c.operations.insert(a.operation);
    }
    return c;
  }

  // Whether the function does all of the scalar loop's operations in packed form somewhere.
  static bool writes_packed(const AsmFunction& function, const HotCandidate& tail) {
    std::set<std::string_view> packed;
    for (const AsmInstruction& instruction : function.code) {
      const Arithmetic a = arithmetic(instruction.mnemonic);
      if (a.kind == Fp::kPacked) packed.insert(a.operation);
    }
    return std::includes(packed.begin(), packed.end(), tail.operations.begin(),
                         tail.operations.end());
  }

  // A scalar loop beside a packed one that does the same is its remainder (or the version for
  // overlapping arrays), wherever it is nested; so is what it does with its vectors' lanes.
  static void drop_remainders(std::vector<HotCandidate>* loops) {
    const std::vector<HotCandidate> all = *loops;
    const auto is_remainder = [&](const HotCandidate& tail) {
      if (tail.packed > 0 || tail.calls > 0 || tail.scalar == 0) return false;
      return std::any_of(all.begin(), all.end(), [&](const HotCandidate& main) {
        if (main.packed == 0) return false;
        // The lanes of a vector, which lie on the stack, are put together once the loop is done.
        if (!tail.data && main.data && main.function == tail.function) return true;
        // A tile that is summed up in registers, and the scalar write-back of tiles at the edge.
        if (main.packed >= kLargePacked && !main.stores && tail.stores &&
            main.function == tail.function && writes_packed(*main.function, tail)) {
          return true;
        }
        if (main.operations != tail.operations) return false;
        if (main.packed >= kLargePacked) return true;
        const bool beside = main.function == tail.function && main.parent == tail.parent;
        return beside && main.stores == tail.stores;
      });
    };
    loops->erase(std::remove_if(loops->begin(), loops->end(), is_remainder), loops->end());
  }

  // Keeps the loops that take the time: nesting first, then work for as many elements as the
  // widest vector holds, so that a scalar loop counts for the iterations that it needs.
  static void weigh(std::vector<HotCandidate>* loops) {
    int bits = 256;
    for (const HotCandidate& c : *loops) bits = std::max(bits, c.bits);
    const double lanes = bits / 32;
    double heaviest = 0;
    for (HotCandidate& c : *loops) {
      c.weight = c.packed + lanes * (c.scalar + kCallWork * c.calls) + 0.1;
      for (int d = 0; d < c.depth; ++d) c.weight *= kDepthFactor;
      heaviest = std::max(heaviest, c.weight);
    }
    loops->erase(
        std::remove_if(loops->begin(), loops->end(),
                       [&](const HotCandidate& c) { return c.weight < kHotShare * heaviest; }),
        loops->end());
  }

  static void add(const AsmFunction& function, const std::vector<int>& body, AsmMix* mix) {
    mix->text += function.name + ":\n";
    for (const int i : body) {
      const AsmInstruction& instruction = function.code[static_cast<std::size_t>(i)];
      const Arithmetic a = arithmetic(instruction.mnemonic);
      const std::string_view name = instruction.mnemonic;
      ++mix->instructions;
      mix->packed_fp += a.kind == Fp::kPacked;
      mix->scalar_fp += a.kind == Fp::kScalar;
      if (a.kind == Fp::kPacked) {
        mix->vector_bits = std::max(mix->vector_bits, register_bits(instruction.operands));
      }
      mix->calls += is_call(name);
      if (mix->text.size() < kMaxText) {
        mix->text += "  " + instruction.mnemonic + " " + instruction.operands + "\n";
      }
    }
  }

  const std::vector<AsmFunction>& functions_;
  std::vector<Analysed> analysed_;
  std::map<unsigned long long, std::size_t> by_address_;
  std::map<std::string_view, std::size_t> by_name_;
};

}  // namespace

std::vector<AsmFunction> parse_objdump(std::string_view text) {
  std::vector<AsmFunction> functions;
  bool wanted = true;
  std::size_t total = 0;
  for (std::size_t begin = 0; begin < text.size() && total < kMaxInstructions;) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    constexpr std::string_view kSection = "Disassembly of section ";
    if (starts(line, kSection)) {
      wanted = starts(line.substr(kSection.size()), ".text");
      continue;
    }
    const std::size_t open = line.find(" <");
    if (!line.empty() && line[0] != ' ' && open != std::string_view::npos && line.size() > 3 &&
        line.substr(line.size() - 2) == ">:") {
      const std::string_view name = line.substr(open + 2, line.size() - open - 4);
      if (wanted) functions.push_back({std::string(name), {}});
      continue;
    }
    AsmInstruction instruction;
    if (wanted && !functions.empty() && parse_instruction(line, &instruction)) {
      functions.back().code.push_back(std::move(instruction));
      ++total;
    }
  }
  return functions;
}

AsmMix hot_mix(const std::vector<AsmFunction>& functions) { return Analysis(functions).mix(); }

}  // namespace kernelpro
