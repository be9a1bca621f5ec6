// SPDX-License-Identifier: Apache-2.0
#include "profile/sass/operands.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "profile/sass/opcodes.h"

namespace kernelpro {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "12" of "12.reuse"; -1 without a number or above `last`.
int number_at(std::string_view text, int last) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0 || value > last) return -1;
  const std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  if (!rest.empty() && (std::isalnum(static_cast<unsigned char>(rest[0])) != 0)) return -1;
  return value;
}

bool is_predicate(std::string_view operand) {
  return operand == "PT" || operand == "UPT" || register_of(operand) >= kFirstPredicate;
}

// Writes no register, whatever its first operand looks like.
bool writes_nothing(const SassInstruction& i) {
  switch (i.op) {
    case Op::kGlobalStore:
    case Op::kSharedStore:
    case Op::kLocalStore:
    case Op::kAsyncCopy:
    case Op::kBulkCopy:
    case Op::kFence:
    case Op::kBranch:
    case Op::kExit:
    case Op::kConverge:
    case Op::kClusterBarrier:
      return true;
    case Op::kCall:
      return true;
    case Op::kBarrier:
      return !i.has("RED") && i.root != "B2R";
    case Op::kGlobalAtomic:
      return i.root.starts_with("RED");
    case Op::kWarpgroup:
      return i.root.starts_with("UTC");
    case Op::kTensorMemory:
      return !i.root.starts_with("LD");
    case Op::kOther:
      return i.root != "ELECT" && i.root != "UGETNEXTWORKID";
    default:
      return false;
  }
}

int words_of(int bits) { return std::max(1, (bits + 31) / 32); }

// "x32" of LDTM.x32, "4" of LDSM.16.M88.4.
int repeat_of(const SassInstruction& i) {
  for (const std::string& m : i.modifiers) {
    const std::string_view digits = m.starts_with("x") ? std::string_view(m).substr(1) : m;
    if (m == "16" || m == "8") continue;
    const int value = number_at(digits, 128);
    if (value > 0) return value;
  }
  return 1;
}

// Registers per thread of a 64 x N accumulator: "64x256x16" with F32 is 128.
int accumulator_words(const SassInstruction& i) {
  for (const std::string& m : i.modifiers) {
    const std::vector<std::string> parts = split(m, 'x');
    if (parts.size() != 3) continue;
    const int n = number_at(parts[1], 512);
    if (n <= 0) return 1;
    const bool half = !i.modifiers.empty() && i.modifiers.back() == "F16" && !i.has("F32");
    return std::max(1, half ? n / 4 : n / 2);
  }
  return 1;
}

int written_words(const SassInstruction& i) {
  switch (i.op) {
    case Op::kGlobalLoad:
      return i.has("256") ? 4 : words_of(access_bits(i));  // 256 bits span two operands
    case Op::kSharedLoad:
    case Op::kLocalLoad:
    case Op::kConstantLoad:
      return words_of(access_bits(i));
    case Op::kGlobalAtomic:
    case Op::kSharedAtomic:
      return i.has("64") || i.has("F64") ? 2 : 1;
    case Op::kMatrixLoad:
    case Op::kTensorMemory:
      return repeat_of(i);
    case Op::kTensor:
      return i.root == "DMMA" || i.has("F32") || i.root != "HMMA" ? 4 : 2;
    case Op::kWarpgroup:
      return accumulator_words(i);
    case Op::kFp64:
      return 2;
    case Op::kConvert:
      return !i.modifiers.empty() && i.has("F64") && i.modifiers[0] == "F64" ? 2
             : i.has("S64") || i.has("U64")                                  ? 2
                                                                             : 1;
    case Op::kFp32:
      return i.root.ends_with("2") ? 2 : 1;
    case Op::kTexture:
      return 4;
    case Op::kCount:
      return i.root.starts_with("CS2") && !i.has("32") ? 2 : 1;
    case Op::kInteger:
    case Op::kMove:
      return i.has("WIDE") || i.has("64") ? 2 : 1;
    default:
      return 1;
  }
}

int read_words(const SassInstruction& i, std::size_t source) {
  switch (i.op) {
    case Op::kGlobalStore:
      return i.has("256") ? 4 : words_of(access_bits(i));
    case Op::kSharedStore:
      return i.root == "STSM" ? repeat_of(i) : words_of(access_bits(i));
    case Op::kLocalStore:
      return words_of(access_bits(i));
    case Op::kGlobalAtomic:
      return i.has("64") || i.has("F64") || i.has("128") ? 2 : 1;
    case Op::kTensorMemory:
      return repeat_of(i);
    case Op::kTensor:
      return source == 1 ? 2 : 4;
    case Op::kWarpgroup:
      return source == 0 ? 4 : accumulator_words(i);
    case Op::kFp64:
      return 2;
    case Op::kConvert:
      return i.has("F64") && i.modifiers[0] != "F64" ? 2 : i.has("S64") || i.has("U64") ? 2 : 1;
    case Op::kFp32:
      return i.root.ends_with("2") ? 2 : 1;
    case Op::kInteger:
      if (i.has("WIDE")) return source == 2 ? 2 : 1;
      return i.has("64") ? 2 : 1;
    case Op::kMove:
      return i.has("64") ? 2 : 1;
    default:
      return 1;
  }
}

// How many of the operands are results.
std::size_t results_of(const SassInstruction& i, const std::vector<std::string_view>& operands) {
  if (operands.empty() || writes_nothing(i)) return 0;
  if (operands[0].find('[') != std::string_view::npos) return 0;
  std::size_t results = 1;
  const bool predicate_first = is_predicate(operands[0]);
  if (i.has("256") && i.op == Op::kGlobalLoad) return std::min<std::size_t>(2, operands.size());
  if (predicate_first) {
    // "ISETP P0, PT, ...", "SHFL PT, R5, ...", "LOP3 P0, R1, ...": one more result. FCHK has one.
    const bool two = i.op == Op::kShuffle || i.op == Op::kGlobalAtomic || i.root == "ELECT" ||
                     i.root.find("SETP") != std::string::npos ||
                     i.root.find("PLOP3") != std::string::npos ||
                     (i.op == Op::kInteger && operands.size() > 2);
    return two ? std::min<std::size_t>(2, operands.size()) : 1;
  }
  const std::size_t most = i.op == Op::kInteger ? 3 : i.op == Op::kVote ? 2 : 1;
  while (results < most && results + 1 < operands.size() && is_predicate(operands[results]) &&
         operands[results][0] != '!') {
    ++results;
  }
  return results;
}

void read_registers(std::string_view text, int count, Use use, std::vector<OperandUse>* reads) {
  const int found = register_of(text);
  if (found >= 0) reads->push_back({{found, found >= kFirstPredicate ? 1 : count}, use});
}

// All registers inside brackets.
void read_address(std::string_view operand, std::vector<OperandUse>* reads) {
  for (std::size_t at = 0; at < operand.size(); ++at) {
    const bool starts = at == 0 || std::isalnum(static_cast<unsigned char>(operand[at - 1])) == 0;
    if (!starts || (operand[at] != 'R' && operand[at] != 'U')) continue;
    std::size_t end = at + 1;
    while (end < operand.size() && (std::isalnum(static_cast<unsigned char>(operand[end])) != 0 ||
                                    operand[end] == '.' || operand[end] == '_')) {
      ++end;
    }
    const std::string_view name = operand.substr(at, end - at);
    const int found = register_of(name);
    // A descriptor and a 64-bit address are pairs.
    const bool wide = name.find(".64") != std::string_view::npos ||
                      (at >= 5 && operand.substr(at - 5, 5) == "desc[");
    if (found >= 0 && found < kFirstPredicate) {
      reads->push_back({{found, wide ? 2 : 1}, Use::kAddress});
    }
    at = end;
  }
}

}  // namespace

bool SassInstruction::has(std::string_view modifier) const {
  return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
}

std::vector<std::string_view> split_operands(std::string_view operands) {
  std::vector<std::string_view> result;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= operands.size(); ++i) {
    const char c = i < operands.size() ? operands[i] : ',';
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    if (i < operands.size() && (c != ',' || depth > 0)) continue;
    const std::string_view part = trim(operands.substr(begin, i - begin));
    if (!part.empty()) result.push_back(part);
    begin = i + 1;
  }
  return result;
}

int register_of(std::string_view operand) {
  while (!operand.empty() && (operand[0] == '-' || operand[0] == '|' || operand[0] == '!' ||
                              operand[0] == '~' || operand[0] == '+')) {
    operand.remove_prefix(1);
  }
  const bool uniform = !operand.empty() && operand[0] == 'U';
  if (uniform) operand.remove_prefix(1);
  if (operand.size() < 2 || !is_digit(operand[1])) return -1;
  const bool predicate = operand[0] == 'P';
  if (!predicate && operand[0] != 'R') return -1;
  const int number = number_at(operand.substr(1), predicate ? 7 : 254);
  if (number < 0) return -1;
  if (predicate) return (uniform ? kFirstUniformPredicate : kFirstPredicate) + number;
  return (uniform ? kFirstUniform : 0) + number;
}

Access access_of(const SassInstruction& i) {
  Access access;
  const int guard =
      register_of(i.guard.empty() ? std::string_view() : std::string_view(i.guard).substr(1));
  if (guard >= 0) access.reads.push_back({{guard, 1}, Use::kGuard});
  const std::vector<std::string_view> operands = split_operands(i.operands);
  const std::size_t results = results_of(i, operands);
  for (std::size_t k = 0; k < results; ++k) {
    const int found = register_of(operands[k]);
    if (found < 0) continue;
    const bool predicate = found >= kFirstPredicate;
    access.writes.push_back({found, predicate ? 1 : written_words(i)});
    // A result written under a condition, or only in half, keeps part of the old value.
    if (guard >= 0 && !predicate) access.reads.push_back({access.writes.back(), Use::kData});
  }
  if (i.root == "R2P") access.writes.push_back({kFirstPredicate, 7});
  for (std::size_t k = results; k < operands.size(); ++k) {
    if (operands[k].find('[') != std::string_view::npos) {
      read_address(operands[k], &access.reads);
    } else if (i.op == Op::kBranch || i.op == Op::kCall) {
      read_registers(operands[k], 1, Use::kGuard, &access.reads);
    } else {
      read_registers(operands[k], read_words(i, k - results), Use::kData, &access.reads);
    }
  }
  return access;
}

Address address_of(const SassInstruction& i) {
  Address address;
  for (const std::string_view operand : split_operands(i.operands)) {
    const std::size_t open = operand.rfind('[');
    const std::size_t close = operand.rfind(']');
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) continue;
    address.found = true;
    address.space = operand.substr(0, open);
    for (const std::string& part : split(operand.substr(open + 1, close - open - 1), '+')) {
      std::string_view term = trim(part);
      const int found = register_of(term);
      if (found >= kFirstUniform) {
        address.uniform = found;
      } else if (found >= 0) {
        address.base = found;
        address.wide = contains(term, ".64");
        if (contains(term, ".X4")) address.scale = 4;
        if (contains(term, ".X8")) address.scale = 8;
        if (contains(term, ".X16")) address.scale = 16;
      } else {
        const bool minus = term.starts_with("-");
        if (minus) term.remove_prefix(1);
        if (!term.starts_with("0x")) continue;
        unsigned long long value = 0;
        term.remove_prefix(2);
        std::from_chars(term.data(), term.data() + term.size(), value, 16);
        value &= 0xffffffffffull;
        address.offset = minus ? -static_cast<long long>(value) : static_cast<long long>(value);
      }
    }
    return address;
  }
  return address;
}

}  // namespace kernelpro
