// SPDX-License-Identifier: Apache-2.0
#include "profile/sass/lanes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <set>

#include "base/text.h"
#include "profile/sass/lane_values.h"
#include "profile/sass/loops.h"
#include "profile/sass/opcodes.h"
#include "profile/sass/operands.h"

namespace kernelpro {

namespace {

constexpr int kGeneral = 255;  // R registers
// Larger kernels are not analysed.
constexpr std::size_t kMaxBlocks = 600;
constexpr std::size_t kMaxCode = 50'000;
constexpr int kMaxRounds = 6;

using State = std::vector<LaneValue>;  // by R register

// An instruction prepared for the analysis, once for all rounds.
struct Prepared {
  explicit Prepared(const SassInstruction& i)
      : access(access_of(i)), operands(split_operands(i.operands)) {}
  Access access;
  std::vector<std::string_view> operands;
};

// The 16 bits of a half-precision number printed by the disassembler; -1: not finite.
long long half_bits(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return -1;
  const long long sign = std::signbit(value) ? 0x8000 : 0;
  value = std::fabs(value);
  if (value == 0) return sign;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // in [0.5, 1)
  if (exponent > 16) return -1;
  if (exponent < -13) return sign | std::llround(std::ldexp(value, 24));
  return sign | ((exponent + 14) << 10 | (std::llround(fraction * 2048) & 0x3ff));
}

class Step {
 public:
  Step(const SassInstruction& i, const Prepared& prepared, LaneTable* table, State* state)
      : i_(i),
        table_(*table),
        state_(*state),
        access_(prepared.access),
        operands_(prepared.operands) {}

  void run() {
    if (access_.writes.empty()) return;
    const LaneValue result = value();
    const bool always = i_.guard.empty() || i_.guard == "@PT";
    bool first = true;
    for (const RegisterSpan& span : access_.writes) {
      for (int r = span.first; r < std::min(span.first + span.count, kGeneral); ++r) {
        // The upper halves of nearby lanes' addresses are equal.
        const LaneValue mine = first                                ? result
                               : result.uniform() || i_.has("WIDE") ? LaneTable::uniform()
                                                                    : LaneTable::unknown();
        LaneValue& slot = state_[static_cast<std::size_t>(r)];
        slot = always ? mine : table_.meet(slot, mine);
        first = false;
      }
    }
  }

 private:
  LaneValue operand(std::string_view text) const {
    const bool minus = text.starts_with("-");
    const int reg = register_of(text);
    if (reg >= 0 && reg < kGeneral) {
      const LaneValue& v = state_[static_cast<std::size_t>(reg)];
      return minus ? table_.scale(v, -1) : v;
    }
    if (reg >= kFirstUniform) return LaneTable::uniform();
    if (minus) text.remove_prefix(1);
    if (text.starts_with("RZ") || text.starts_with("URZ") || text.starts_with("SRZ")) {
      return LaneTable::literal(0);
    }
    if (text.starts_with("0x")) {
      unsigned long long bits = 0;
      std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
      const long long number = static_cast<std::int32_t>(bits & 0xffffffffull);
      return LaneTable::literal(minus ? -number : number);
    }
    if (text.starts_with("c[")) {
      return address_of(i_).base < 0 ? LaneTable::uniform() : LaneTable::unknown();
    }
    return LaneTable::uniform();  // immediates of floating point, tables, predicates
  }

  // The k-th source that is not a predicate.
  LaneValue source(std::size_t k) const {
    std::size_t found = 0;
    bool destination = true;
    for (const std::string_view text : operands_) {
      const int reg = register_of(text);
      if (reg >= kFirstPredicate || text == "PT" || text == "!PT" || text == "UPT" ||
          text == "!UPT") {
        continue;
      }
      if (destination) {
        destination = false;
        continue;
      }
      if (found++ == k) return operand(text);
    }
    return LaneTable::literal(0);
  }

  LaneValue any() const {
    for (const OperandUse& read : access_.reads) {
      if (read.use == Use::kGuard && read.registers.first >= kFirstPredicate) continue;
      for (int r = read.registers.first; r < read.registers.first + read.registers.count; ++r) {
        if (r >= kFirstPredicate && r < kFirstUniformPredicate) return LaneTable::unknown();
        if (r < kGeneral && !state_[static_cast<std::size_t>(r)].uniform())
          return LaneTable::unknown();
      }
    }
    return LaneTable::uniform();
  }

  LaneValue special_register() const {
    const std::string_view name = operands_.size() > 1 ? operands_[1] : std::string_view();
    if (name == "SR_TID.X" || name == "SR_LANEID") return table_.thread();
    if (contains(name, "CTAID") || contains(name, "TID.Y") || contains(name, "TID.Z") ||
        name == "SRZ" || contains(name, "CgaCtaId") || contains(name, "NTID") ||
        contains(name, "WARPID")) {
      return LaneTable::uniform();
    }
    return LaneTable::unknown();
  }

  LaneValue logic() const {
    const LaneValue a = source(0), b = source(1), c = source(2), table = source(3);
    if (a.uniform() && b.uniform() && c.uniform()) return LaneTable::uniform();
    if (!table.constant) return LaneTable::unknown();
    if (table.number == 0xf8) return table_.bit_or(table_.bit_and(a, b), c);
    if (table.number == 0x78) return table_.bit_xor(table_.bit_and(a, b), c);
    if (!(c == LaneTable::literal(0))) return LaneTable::unknown();
    if (table.number == 0x33 && a == LaneTable::literal(0))
      return table_.add(table_.scale(b, -1), LaneTable::literal(-1));  // ~b
    if (table.number == 0xc0) return table_.bit_and(a, b);
    if (table.number == 0xfc) return table_.bit_or(a, b);
    if (table.number == 0x3c) return table_.bit_xor(a, b);
    return LaneTable::unknown();
  }

  LaneValue shift() const {
    if (!i_.has("L") && i_.root != "SHL") {
      // SHF.R.U32.HI R, RZ, by, value
      const bool funnel = i_.root == "SHF";
      const LaneValue value = source(funnel ? 2 : 0), by = source(1);
      return !funnel || source(0) == LaneTable::literal(0) || i_.has("S32")
                 ? table_.shift_right(value, by)
                 : any();
    }
    const LaneValue by = source(1);
    if (!by.constant || by.number < 0 || by.number > 31) return any();
    if (i_.has("HI")) return any();
    return table_.scale(source(0), 1LL << by.number);
  }

  LaneValue lea() const {
    const LaneValue shift = source(2);
    if (!shift.constant || shift.number < 0 || shift.number > 31) return any();
    return table_.add(table_.scale(source(0), 1LL << shift.number), source(1));
  }

  // LEA.HI R, a, b, RZ, s: b plus the bits of a << s above bit 31.
  LaneValue high_lea() const {
    const LaneValue shift = source(3);
    if (!shift.constant || shift.number < 1 || shift.number > 31) return any();
    if (!(source(2) == LaneTable::literal(0))) return any();
    return table_.add(table_.shift_right(source(0), LaneTable::literal(32 - shift.number)),
                      source(1));
  }

  // "HFMA2.MMA R3, -RZ, RZ, 0, 2.384185791015625e-07" puts 4 into R3.
  LaneValue half_constant() const {
    if (operands_.size() != 5 || operands_[1] != "-RZ" || operands_[2] != "RZ") return any();
    const long long high = half_bits(operands_[3]), low = half_bits(operands_[4]);
    if (high < 0 || low < 0) return LaneTable::uniform();
    return LaneTable::literal(
        static_cast<std::int32_t>(static_cast<std::uint32_t>(high << 16 | low)));
  }

  LaneValue value() const {
    switch (i_.op) {
      case Op::kCount:
        return special_register();
      case Op::kConstantLoad:
        return address_of(i_).base < 0 ? LaneTable::uniform() : any();
      case Op::kMove:
        if (i_.root == "MOV" || i_.root == "MOV32I") return source(0);
        return any();
      case Op::kInteger:
        break;
      case Op::kHalf:
        return half_constant();
      case Op::kGlobalAtomic:
      case Op::kSharedAtomic:
      case Op::kLocalLoad:
      case Op::kCall:
      case Op::kUnknown:
        return LaneTable::unknown();
      // Uniform inputs give a uniform result.
      default:
        return any();
    }
    const std::string& root = i_.root;
    if (i_.has("X") || i_.has("HI")) {
      if (root == "LEA" && !i_.has("X")) return high_lea();
      return root == "SHF" ? shift() : any();
    }
    if (root == "IADD3") return table_.add(table_.add(source(0), source(1)), source(2));
    if (root == "IADD" || root == "VIADD" || root == "IADD32I")
      return table_.add(source(0), source(1));
    if (root == "IMAD" || root == "IMAD32I") {
      if (i_.has("MOV")) return source(2);
      return table_.add(table_.multiply(source(0), source(1)), source(2));
    }
    if (root == "IMUL") return table_.multiply(source(0), source(1));
    if (root == "LEA") return lea();
    if (root == "SHF" || root == "SHL" || root == "SHR") return shift();
    if (root == "LOP3") return logic();
    if (root == "SEL") return table_.meet(source(0), source(1));
    return any();
  }

  const SassInstruction& i_;
  LaneTable& table_;
  State& state_;
  const Access& access_;
  const std::vector<std::string_view>& operands_;
};

// The most words of one access that hit one bank at once, over the fewest for its width.
int bank_ways(const Lanes& offsets, int bytes) {
  // Wide accesses are served in halves or quarters of a warp.
  const int together = std::clamp(128 / bytes, 1, kLanes);
  int worst = 1;
  for (int first = 0; first < kLanes; first += together) {
    std::array<std::set<int>, 32> words;
    for (int lane = first; lane < first + together; ++lane) {
      const int word = (offsets[static_cast<std::size_t>(lane)] & ~3) / 4;
      for (int w = word; w < word + bytes / 4; ++w) {
        words[static_cast<std::size_t>(w & 31)].insert(w);
      }
    }
    for (const std::set<int>& bank : words) worst = std::max(worst, static_cast<int>(bank.size()));
  }
  return worst;
}

LaneAccess describe(const SassInstruction& i, const LaneValue& address, const LaneTable& table) {
  constexpr int kSector = 32;
  LaneAccess access;
  if (!address.known) return access;
  access.known = true;
  access.uniform = address.uniform();
  access.runtime = address.labels != 0;
  Lanes offsets = table.lanes(address.pattern);
  const Lanes& labels = table.lanes(address.labels);
  const int lowest = *std::min_element(offsets.begin(), offsets.end());
  const int bytes = std::max(4, access_bits(i) / 8);
  std::set<std::pair<int, int>> sectors;
  bool even = true;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    even = even && (lane == 0 || offsets[lane] - offsets[lane - 1] == offsets[1] - offsets[0]);
    while (offsets[lane] % access.granule != 0) access.granule /= 2;
    const int start = offsets[lane] - lowest;
    for (int s = start / kSector; s <= (start + bytes - 1) / kSector; ++s) {
      sectors.insert({labels[lane], s});
    }
  }
  if (even && !access.runtime) access.stride = offsets[1] - offsets[0];
  if (access.runtime) access.granule = 16;
  access.sectors = static_cast<int>(sectors.size());
  access.fewest_sectors = access.uniform ? (bytes + kSector - 1) / kSector : bytes;
  if (!access.runtime) {
    for (int& offset : offsets) offset -= lowest;
    access.ways = bank_ways(offsets, bytes);
  }
  return access;
}

LaneAccess access_at(const SassInstruction& i, const State& state, LaneTable* table) {
  const Address address = address_of(i);
  if (!address.found || address.base >= kGeneral) return {};
  if (address.base < 0) return describe(i, LaneTable::uniform(), *table);
  const LaneValue& base = state[static_cast<std::size_t>(address.base)];
  return describe(i, table->scale(base, address.scale), *table);
}

bool accesses_memory(Op op) {
  switch (op) {
    case Op::kGlobalLoad:
    case Op::kGlobalStore:
    case Op::kGlobalAtomic:
    case Op::kSharedLoad:
    case Op::kSharedStore:
    case Op::kSharedAtomic:
    case Op::kConstantLoad:
      return true;
    default:
      return false;
  }
}

struct Block {
  int first = 0, last = 0;
  std::vector<int> next;
  State in;
  bool reached = false;
};

// Basic blocks in code order; none if there are more than `kMaxBlocks`.
std::vector<Block> blocks_of(const std::vector<Flow>& flow) {
  const int n = static_cast<int>(flow.size());
  std::set<int> leaders{0};
  for (int i = 0; i < n; ++i) {
    const Flow& f = flow[static_cast<std::size_t>(i)];
    if (f.target >= 0) leaders.insert(f.target);
    leaders.insert(f.more.begin(), f.more.end());
    if ((f.target >= 0 || !f.falls_through || !f.more.empty()) && i + 1 < n) leaders.insert(i + 1);
  }
  std::vector<Block> blocks;
  if (leaders.size() > kMaxBlocks) return blocks;
  std::vector<int> owner(flow.size(), 0);
  for (auto it = leaders.begin(); it != leaders.end(); ++it) {
    const int last = std::next(it) == leaders.end() ? n - 1 : *std::next(it) - 1;
    for (int i = *it; i <= last; ++i) {
      owner[static_cast<std::size_t>(i)] = static_cast<int>(blocks.size());
    }
    blocks.push_back({*it, last, {}, {}, false});
  }
  for (Block& block : blocks) {
    const Flow& f = flow[static_cast<std::size_t>(block.last)];
    const auto connect = [&](int to) { block.next.push_back(owner[static_cast<std::size_t>(to)]); };
    if (f.target >= 0) connect(f.target);
    for (const int to : f.more) connect(to);
    if (f.falls_through && block.last + 1 < n) connect(block.last + 1);
  }
  return blocks;
}

void flow_into(Block* to, const State& state, const LaneTable& table, bool* changed) {
  if (!to->reached) {
    to->reached = true;
    to->in = state;
    *changed = true;
    return;
  }
  for (std::size_t r = 0; r < state.size(); ++r) {
    const LaneValue met = table.meet(to->in[r], state[r]);
    if (met == to->in[r]) continue;
    to->in[r] = met;
    *changed = true;
  }
}

}  // namespace

std::vector<LaneAccess> lane_accesses(const SassFunction& kernel) {
  std::vector<LaneAccess> accesses(kernel.code.size());
  if (kernel.code.empty() || kernel.code.size() > kMaxCode) return accesses;
  std::vector<Block> blocks = blocks_of(flow_of(kernel));
  if (blocks.empty()) return accesses;
  LaneTable table;
  const std::vector<Prepared> prepared(kernel.code.begin(), kernel.code.end());
  blocks[0].reached = true;
  blocks[0].in.assign(kGeneral, LaneTable::unknown());
  bool changed = true;
  for (int round = 0; changed && round <= kMaxRounds; ++round) {
    if (round == kMaxRounds) return std::vector<LaneAccess>(kernel.code.size());
    changed = false;
    for (Block& block : blocks) {
      if (!block.reached) continue;
      State state = block.in;
      for (int i = block.first; i <= block.last; ++i) {
        const SassInstruction& at = kernel.code[static_cast<std::size_t>(i)];
        if (accesses_memory(at.op))
          accesses[static_cast<std::size_t>(i)] = access_at(at, state, &table);
        Step(at, prepared[static_cast<std::size_t>(i)], &table, &state).run();
      }
      for (const int next : block.next) {
        flow_into(&blocks[static_cast<std::size_t>(next)], state, table, &changed);
      }
    }
  }
  return accesses;
}

}  // namespace kernelpro
