// SPDX-License-Identifier: Apache-2.0
#include "profile/code/asm_operands.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/text.h"

namespace kernelpro {

namespace {

bool starts(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

// With or without 0x.
bool parse_number(std::string_view text, unsigned long long* value) {
  return parse_hex(starts(text, "0x") ? text.substr(2) : text, value);
}

// "rax", "eax", "ax" and "al" are one register.
int general_register(std::string_view name) {
  static constexpr std::string_view kNames[][4] = {
      {"rax", "eax", "ax", "al"},  {"rcx", "ecx", "cx", "cl"},  {"rdx", "edx", "dx", "dl"},
      {"rbx", "ebx", "bx", "bl"},  {"rsp", "esp", "sp", "spl"}, {"rbp", "ebp", "bp", "bpl"},
      {"rsi", "esi", "si", "sil"}, {"rdi", "edi", "di", "dil"}};
  for (int r = 0; r < 8; ++r) {
    for (const std::string_view each : kNames[r]) {
      if (name == each) return r;
    }
  }
  if (name.size() < 2 || name[0] != 'r') return -1;
  name.remove_prefix(1);
  if (name.back() == 'd' || name.back() == 'w' || name.back() == 'b') name.remove_suffix(1);
  int number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = error == std::errc() && end == name.data() + name.size();
  return whole && number >= 8 && number <= 15 ? number : -1;
}

// "rax+rcx*4-0x10"
void read_address(std::string_view text, AsmOperand* operand) {
  for (std::size_t begin = 0; begin < text.size();) {
    const bool minus = text[begin] == '-';
    if (minus || text[begin] == '+') ++begin;
    const std::size_t end = std::min(text.find_first_of("+-", begin), text.size());
    const std::string_view term = text.substr(begin, end - begin);
    begin = end;
    const std::size_t star = term.find('*');
    const int reg = general_register(term.substr(0, star));
    unsigned long long number = 0;
    if (star != std::string_view::npos) {
      operand->index = reg;
      operand->scale = star + 1 < term.size() ? term[star + 1] - '0' : 1;
    } else if (term == "rip") {
      operand->rip = true;
    } else if (reg >= 0) {
      (operand->base < 0 ? operand->base : operand->index) = reg;
    } else if (parse_number(term, &number)) {
      operand->value = static_cast<long long>(minus ? 0 - number : number);
    }
  }
}

AsmOperand read_operand(std::string_view text) {
  AsmOperand operand;
  text = trim(text);
  const std::size_t open = text.find('[');
  const std::size_t close = text.find(']', std::min(open, text.size()));
  unsigned long long number = 0;
  if (open != std::string_view::npos && close != std::string_view::npos) {
    operand.kind = AsmOperand::Kind::kMemory;
    read_address(text.substr(open + 1, close - open - 1), &operand);
  } else if (starts(text, "0x") && parse_number(text, &number)) {
    operand.kind = AsmOperand::Kind::kImmediate;
    operand.value = static_cast<long long>(number);
    // A negative immediate of a 32-bit instruction.
    if (number > 0x7fffffff && number <= 0xffffffff) operand.value -= 0x100000000;
  } else if ((operand.reg = general_register(text)) >= 0) {
    operand.kind = AsmOperand::Kind::kRegister;
  }
  return operand;
}

}  // namespace

std::vector<AsmOperand> asm_operands(const AsmInstruction& instruction) {
  std::vector<AsmOperand> result;
  std::string_view text = instruction.operands;
  text = text.substr(0, text.find('#'));
  while (!trim(text).empty()) {
    std::size_t end = 0;
    for (bool inside = false; end < text.size(); ++end) {
      if (text[end] == '[') inside = true;
      if (text[end] == ']') inside = false;
      if (text[end] == ',' && !inside) break;
    }
    result.push_back(read_operand(text.substr(0, end)));
    if (end >= text.size()) break;
    text = text.substr(end + 1);
  }
  return result;
}

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

bool is_packed_integer(std::string_view mnemonic) {
  std::string_view name = mnemonic;
  if (starts(name, "v")) name.remove_prefix(1);
  static constexpr std::string_view kStems[] = {"padd", "psub", "pmul", "pmadd", "pdp", "psad"};
  return std::any_of(std::begin(kStems), std::end(kStems),
                     [&](std::string_view stem) { return starts(name, stem); });
}

int vector_bits(std::string_view operands) {
  if (contains(operands, "zmm")) return 512;
  if (contains(operands, "ymm")) return 256;
  return 128;
}

AsmReference asm_reference(std::string_view operands) {
  AsmReference r;
  const std::size_t open = operands.rfind('<');
  const std::size_t close = operands.rfind('>');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return r;
  std::string_view before = trim(operands.substr(0, open));
  const std::size_t space = before.find_last_of(" \t#");
  if (space != std::string_view::npos) before = before.substr(space + 1);
  r.valid = parse_number(before, &r.address);
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

Fp math_call(const AsmInstruction& instruction) {
  if (!is_call(instruction.mnemonic)) return Fp::kNone;
  std::string_view name = asm_reference(instruction.operands).symbol;
  name = name.substr(0, name.find('@'));
  if (starts(name, "_ZGV")) return Fp::kPacked;
  if (starts(name, "__")) name.remove_prefix(2);
  name = name.substr(0, name.find("_finite"));
  static const std::set<std::string_view> functions = {
      "exp",    "exp2",   "exp10",     "expm1", "log",   "log2",  "log10",     "log1p",
      "pow",    "sin",    "cos",       "tan",   "asin",  "acos",  "atan",      "atan2",
      "sinh",   "cosh",   "tanh",      "asinh", "acosh", "atanh", "erf",       "erfc",
      "tgamma", "lgamma", "sqrt",      "cbrt",  "hypot", "fmod",  "remainder", "fma",
      "fmax",   "fmin",   "fdim",      "ldexp", "frexp", "modf",  "sincos",    "scalbn",
      "round",  "rint",   "nearbyint", "floor", "ceil",  "trunc"};
  if (functions.count(name) > 0) return Fp::kScalar;
  if (!name.empty() && (name.back() == 'f' || name.back() == 'l')) name.remove_suffix(1);
  return functions.count(name) > 0 ? Fp::kScalar : Fp::kNone;
}

}  // namespace kernelpro
