// SPDX-License-Identifier: Apache-2.0
#include "profile/sass.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "base/text.h"
#include "profile/loops.h"

namespace kernelpro {

namespace {

constexpr std::size_t kMaxInstructions = 400'000;  // of a whole file
constexpr std::size_t kMaxText = 8000;
// A level of nesting outweighs this much work in one iteration; loops with kHotShare of the
// heaviest one's weight are hot as well. Estimates.
constexpr double kDepthFactor = 16;
constexpr double kHotShare = 0.2;
constexpr int kMaxDepth = 12;
constexpr int kLongestWait = 8;  // instructions of a loop that only waits

bool starts(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool has(const SassInstruction& i, std::string_view modifier) {
  return std::find(i.modifiers.begin(), i.modifiers.end(), modifier) != i.modifiers.end();
}

bool parse_hex(std::string_view text, unsigned long long* value) {
  if (text.empty()) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value, 16);
  return error == std::errc() && end == text.data() + text.size();
}

// "/*00b0*/  @P0 LDG.E.128 R4, desc[UR4][R2.64] ;  /* 0x... */"
bool parse_instruction(std::string_view line, SassInstruction* instruction) {
  line = trim(line);
  if (!starts(line, "/*")) return false;
  const std::size_t close = line.find("*/");
  if (close == std::string_view::npos) return false;
  if (!parse_hex(line.substr(2, close - 2), &instruction->address)) return false;
  std::string_view rest = line.substr(close + 2);
  const std::size_t comment = rest.find("/*");
  if (comment != std::string_view::npos) rest = rest.substr(0, comment);
  rest = trim(rest);
  if (!rest.empty() && rest.back() == ';') rest = trim(rest.substr(0, rest.size() - 1));
  if (starts(rest, "{")) rest = trim(rest.substr(1));  // dual issue of old GPUs
  if (starts(rest, "@")) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    instruction->guard = rest.substr(0, end);
    rest = trim(rest.substr(end));
  }
  const std::size_t end = std::min(rest.find_first_of(" \t"), rest.size());
  const std::vector<std::string> name = split(rest.substr(0, end), '.');
  if (name[0].empty() || name[0][0] < 'A' || name[0][0] > 'Z') return false;
  instruction->root = name[0];
  instruction->modifiers.assign(name.begin() + 1, name.end());
  instruction->operands = trim(rest.substr(end));
  return true;
}

// The branch's own destination: the last operand, "`(.L_x_3)" or "0x2f0".
std::string_view destination(const SassInstruction& i) {
  const std::size_t comma = i.operands.rfind(',');
  std::string_view last = i.operands;
  if (comma != std::string::npos) last = last.substr(comma + 1);
  last = trim(last);
  if (starts(last, "`(") && last.back() == ')') return last.substr(2, last.size() - 3);
  return last;
}

std::vector<Flow> flow_of(const SassFunction& function) {
  std::map<unsigned long long, int> index;
  for (std::size_t i = 0; i < function.code.size(); ++i) {
    index[function.code[i].address] = static_cast<int>(i);
  }
  std::vector<Flow> flow(function.code.size());
  for (std::size_t i = 0; i < function.code.size(); ++i) {
    const SassInstruction& at = function.code[i];
    const bool guarded = !at.guard.empty() && at.guard != "@PT";
    if (one_of(at.root, {"EXIT", "RET", "BRX", "JMX", "BRXU", "JMXU", "KILL"})) {
      flow[i].falls_through = guarded || contains(at.operands, "P");
      if (at.root == "RET") flow[i].falls_through = guarded;
    }
    const bool collective = at.root == "WARPSYNC" && contains(at.operands, ",");
    if (!one_of(at.root, {"BRA", "JMP"}) && !collective) continue;
    // A uniform predicate comes as an operand before the destination.
    const bool conditional = guarded || contains(at.operands, ",");
    if (!conditional) flow[i].falls_through = false;
    const std::string_view to = destination(at);
    const auto label = function.labels.find(std::string(to));
    unsigned long long address = 0;
    if (label != function.labels.end()) {
      if (label->second < static_cast<int>(flow.size())) flow[i].target = label->second;
    } else if (starts(to, "0x") && parse_hex(to.substr(2), &address)) {
      const auto found = index.find(address);
      if (found != index.end()) flow[i].target = found->second;
    }
  }
  return flow;
}

bool is_tensor(const SassInstruction& i) {
  return one_of(i.root, {"HMMA", "IMMA", "DMMA", "BMMA", "QMMA", "OMMA"});
}
// Warpgroup matrix instructions (sm_90) and those of the fifth generation (sm_100).
bool is_warpgroup(const SassInstruction& i) {
  if (one_of(i.root, {"HGMMA", "IGMMA", "QGMMA", "BGMMA"})) return true;
  return starts(i.root, "UTC") && i.root.size() > 6 && i.root.substr(i.root.size() - 3) == "MMA";
}
bool is_fp32(const SassInstruction& i) {
  return one_of(
      i.root, {"FFMA", "FADD", "FMUL", "FFMA2", "FADD2", "FMUL2", "FFMA32I", "FADD32I", "FMUL32I"});
}
bool is_half(const SassInstruction& i) {
  if (!one_of(i.root, {"HFMA2", "HADD2", "HMUL2"})) return false;
  // "HFMA2.MMA R7, -RZ, RZ, 1.875, 0" is how a constant is put into a register.
  return !contains(i.operands, "-RZ, RZ");
}
bool is_fp64(const SassInstruction& i) { return one_of(i.root, {"DFMA", "DADD", "DMUL"}); }
bool is_integer(const SassInstruction& i) {
  if (i.root == "IMAD" && has(i, "MOV")) return false;
  return one_of(i.root,
                {"IADD3", "IADD",  "IMAD",   "LEA",    "SHF",       "SHL",    "SHR",    "LOP3",
                 "PRMT",  "ISETP", "IMNMX",  "VIMNMX", "VIADD",     "SEL",    "BMSK",   "SGXT",
                 "IABS",  "IDP",   "XMAD",   "LOP",    "VIADDMNMX", "UIADD3", "UIMAD",  "ULEA",
                 "USHF",  "ULOP3", "UISETP", "USEL",   "UPRMT",     "UIADD",  "VIMNMX3"});
}
bool is_global_load(const SassInstruction& i) { return one_of(i.root, {"LDG", "LD"}); }
bool is_global_store(const SassInstruction& i) { return one_of(i.root, {"STG", "ST"}); }
bool is_async_copy(const SassInstruction& i) {
  return one_of(i.root, {"LDGSTS", "UBLKCP", "UTMALDG", "UTMASTG", "UTMAREDG"});
}
bool is_shared_load(const SassInstruction& i) { return one_of(i.root, {"LDS", "LDSM"}); }
bool is_shared_store(const SassInstruction& i) { return one_of(i.root, {"STS", "STSM"}); }

// Bits that one thread moves. Whole fields only: "LTC128B" is a cache hint, no width.
int access_bits(const SassInstruction& i) {
  if (has(i, "128")) return 128;
  if (has(i, "256")) return 256;
  if (has(i, "64")) return 64;
  if (has(i, "U8") || has(i, "S8")) return 8;
  if (has(i, "U16") || has(i, "S16")) return 16;
  return 32;
}

// Spinning on a barrier, a lock or a flag.
bool waits(const SassFunction& f, const std::vector<int>& body) {
  if (static_cast<int>(body.size()) > kLongestWait) return false;
  return std::any_of(body.begin(), body.end(), [&](int index) {
    const SassInstruction& i = f.code[static_cast<std::size_t>(index)];
    return i.root == "NANOSLEEP" || (i.root == "SYNCS" && has(i, "TRYWAIT")) ||
           (starts(i.root, "ATOM") && (has(i, "CAS") || contains(i.operands, "CAS"))) ||
           (is_global_load(i) && (has(i, "STRONG") || has(i, "VOLATILE")));
  });
}

struct Hot {
  std::vector<int> own;  // instructions that are in no inner loop
  int parent = -1;
  int depth = 0;
  double weight = 0;
  std::set<std::string> payload;  // kinds of work, without widths
};

double work_of(const SassInstruction& i) {
  if (is_tensor(i) || is_warpgroup(i)) return 64;
  if (is_global_load(i) || is_global_store(i) || is_async_copy(i)) return 8;
  if (one_of(i.root, {"RED", "REDG", "ATOM", "ATOMG"})) return 8;
  if (one_of(i.root, {"LDL", "STL"})) return 4;
  if (is_shared_load(i) || is_shared_store(i)) return 2;
  if (is_fp32(i) || is_half(i) || i.root == "MUFU" || starts(i.root, "FMNMX")) return 1;
  if (is_fp64(i)) return 2;
  return 0;
}

std::vector<Hot> hot_loops(const SassFunction& f, const std::vector<Flow>& flow) {
  const std::vector<Loop> loops = find_loops(flow);
  std::vector<int> owner(f.code.size(), -1);
  for (std::size_t l = 0; l < loops.size(); ++l) {
    for (const int i : loops[l].body) {
      int& o = owner[static_cast<std::size_t>(i)];
      if (o < 0 || loops[static_cast<std::size_t>(o)].depth < loops[l].depth) {
        o = static_cast<int>(l);
      }
    }
  }
  std::vector<Hot> hot(loops.size());
  for (std::size_t i = 0; i < owner.size(); ++i) {
    if (owner[i] < 0) continue;
    Hot& h = hot[static_cast<std::size_t>(owner[i])];
    const double work = work_of(f.code[i]);
    h.own.push_back(static_cast<int>(i));
    h.weight += work;
    if (work > 0) h.payload.insert(f.code[i].root);
  }
  std::vector<Hot> result;
  for (std::size_t l = 0; l < loops.size(); ++l) {
    if (waits(f, loops[l].body)) continue;
    hot[l].parent = loops[l].parent;
    hot[l].depth = std::min(loops[l].depth, kMaxDepth);
    hot[l].weight = (hot[l].weight + 0.1) * std::pow(kDepthFactor, hot[l].depth);
    result.push_back(std::move(hot[l]));
  }
  return result;
}

// Of loops side by side that do the same kinds of work, the longer is the unrolled main loop and
// the shorter its remainder.
void drop_remainders(std::vector<Hot>* hot) {
  std::map<std::pair<int, std::set<std::string>>, std::size_t> longest;
  for (const Hot& h : *hot) {
    std::size_t& n = longest[{h.parent, h.payload}];
    n = std::max(n, h.own.size());
  }
  hot->erase(
      std::remove_if(hot->begin(), hot->end(),
                     [&](const Hot& h) {
                       return !h.payload.empty() && h.own.size() < longest[{h.parent, h.payload}];
                     }),
      hot->end());
}

void count_hot(const SassInstruction& i, std::map<std::string, double>* m) {
  const auto count = [&](const char* name, bool yes) { (*m)[name] += yes ? 1 : 0; };
  const bool load = is_global_load(i);
  const bool store = is_global_store(i);
  const int bits = access_bits(i);
  count("sass.hot.instructions", true);
  count("sass.hot.global_loads", load);
  count("sass.hot.global_loads_128", load && bits >= 128);
  count("sass.hot.global_loads_64", load && bits == 64);
  count("sass.hot.global_loads_32", load && bits == 32);
  count("sass.hot.global_loads_narrow", load && bits < 32);
  count("sass.hot.global_stores", store);
  count("sass.hot.global_stores_128", store && bits >= 128);
  count("sass.hot.shared_loads", is_shared_load(i));
  count("sass.hot.shared_stores", is_shared_store(i));
  count("sass.hot.async_copies", is_async_copy(i));
  count("sass.hot.local_loads", i.root == "LDL");
  count("sass.hot.local_stores", i.root == "STL");
  count("sass.hot.ffma", is_fp32(i));
  count("sass.hot.half_math", is_half(i));
  count("sass.hot.fp64", is_fp64(i));
  count("sass.hot.integer", is_integer(i));
  count("sass.hot.mufu", i.root == "MUFU");
  count("sass.hot.barriers", i.root == "BAR");
}

void add_text(const SassInstruction& i, std::string* text) {
  if (text->size() >= kMaxText) return;
  *text += "  ";
  if (!i.guard.empty()) *text += i.guard + " ";
  *text += i.root;
  for (const std::string& modifier : i.modifiers) *text += "." + modifier;
  *text += " " + i.operands + "\n";
}

// A new function in either tool's text, or "".
std::string_view function_name(std::string_view line) {
  line = trim(line);
  constexpr std::string_view kCuobjdump = "Function : ";
  constexpr std::string_view kNvdisasm = ".text.";
  if (starts(line, kCuobjdump)) return trim(line.substr(kCuobjdump.size()));
  if (starts(line, kNvdisasm) && line.back() == ':') {
    return line.substr(kNvdisasm.size(), line.size() - kNvdisasm.size() - 1);
  }
  return {};
}

std::string arch_of(std::string_view line) {
  const std::size_t at = line.find("sm_");
  if (at == std::string_view::npos) return "";
  std::size_t end = at + 3;
  while (end < line.size() && (std::isdigit(static_cast<unsigned char>(line[end])) != 0 ||
                               (line[end] >= 'a' && line[end] <= 'z'))) {
    ++end;
  }
  return std::string(line.substr(at, end - at));
}

}  // namespace

std::vector<SassFunction> parse_sass(std::string_view text) {
  std::vector<SassFunction> functions;
  std::string arch;
  bool inside = false;
  std::size_t total = 0;
  for (std::size_t begin = 0; begin < text.size() && total < kMaxInstructions;) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = trim(text.substr(begin, end - begin));
    begin = end + 1;
    if (line.empty()) continue;
    const std::string_view name = function_name(line);
    if (!name.empty()) {
      functions.push_back({std::string(name), arch, {}, {}});
      inside = true;
    } else if (starts(line, ".target") || starts(line, "code for sm_")) {
      arch = arch_of(line);
    } else if (starts(line, ".section") || starts(line, "//------")) {
      inside = false;
    } else if (inside && line.back() == ':' && !contains(line, " ")) {
      SassFunction& f = functions.back();
      f.labels[std::string(line.substr(0, line.size() - 1))] = static_cast<int>(f.code.size());
    } else if (inside) {
      SassInstruction instruction;
      if (!parse_instruction(line, &instruction)) continue;
      functions.back().code.push_back(std::move(instruction));
      ++total;
    }
  }
  return functions;
}

SassMix hot_mix(const SassFunction& kernel) {
  SassMix mix;
  const std::vector<Flow> flow = flow_of(kernel);
  std::vector<Hot> hot = hot_loops(kernel, flow);
  drop_remainders(&hot);
  double heaviest = 0;
  for (const Hot& h : hot) heaviest = std::max(heaviest, h.weight);
  // Every name appears, if only with 0. The prototype counts nothing but itself.
  count_hot({}, &mix.metrics);
  mix.metrics["sass.hot.instructions"] = 0;
  const auto add = [&](const std::vector<int>& body) {
    for (const int i : body) {
      const SassInstruction& instruction = kernel.code[static_cast<std::size_t>(i)];
      if (instruction.root == "NOP") continue;
      count_hot(instruction, &mix.metrics);
      add_text(instruction, &mix.text);
    }
  };
  for (const Hot& h : hot) {
    if (h.weight < kHotShare * heaviest) continue;
    mix.weight += h.weight;
    add(h.own);
    mix.text += "  --\n";
    ++mix.loops;
  }
  if (mix.loops == 0) {
    const std::vector<int> body = reachable(flow);
    for (const int i : body) mix.weight += work_of(kernel.code[static_cast<std::size_t>(i)]);
    add(body);
  }
  for (const char* name : {"sass.hmma", "sass.hgmma", "sass.local_loads", "sass.local_stores"}) {
    mix.metrics[name] = 0;
  }
  for (const SassInstruction& i : kernel.code) {
    mix.metrics["sass.hmma"] += is_tensor(i);
    mix.metrics["sass.hgmma"] += is_warpgroup(i);
    mix.metrics["sass.local_loads"] += i.root == "LDL";
    mix.metrics["sass.local_stores"] += i.root == "STL";
  }
  mix.text = clip(mix.text, kMaxText);
  return mix;
}

}  // namespace kernelpro
