// SPDX-License-Identifier: Apache-2.0
#include "profile/sass/patterns.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <set>
#include <tuple>

#include "base/text.h"
#include "profile/sass/opcodes.h"

namespace kernelpro {

namespace {

constexpr int kVectorBytes = 16;  // the widest access that all supported GPUs have

std::size_t slot(int index) { return static_cast<std::size_t>(index); }

struct Piece {
  long long offset = 0;
  int bytes = 0;
  int place = 0;
};

// Accesses may be merged if all of these are equal.
using Group = std::tuple<int, int, int, std::string, std::string>;

// The loop's step of a base address; 0: none, or known only at run time.
long long step_of(const Dataflow& body, int base) {
  long long step = 0;
  if (base < 0 || !body.written(base)) return 0;
  for (int p = 0; p < body.size(); ++p) {
    const auto& writes = body.access(p).writes;
    const std::string& root = body.at(p).root;
    const bool adds = root == "IADD3" || root == "IADD" || root == "VIADD";
    if (writes.empty() || writes[0].first != base || !adds) continue;
    bool itself = false;
    long long number = 0;
    for (const std::string_view operand : split_operands(body.at(p).operands)) {
      itself = itself || register_of(operand) == base;
      if (operand.starts_with("0x")) {
        std::from_chars(operand.data() + 2, operand.data() + operand.size(), number, 16);
      }
    }
    if (itself && number != 0) step = number;
  }
  return step;
}

// The widest vector that every lane may use in every iteration.
int widest(const Dataflow& body, const Piece& piece, const LaneAccess& lanes) {
  int vector = lanes.known ? std::min(kVectorBytes, lanes.granule) : kVectorBytes;
  const long long step = step_of(body, address_of(body.at(piece.place)).base);
  while (vector > 1 && step % vector != 0) vector /= 2;
  return vector;
}

// Consecutive pieces [first, last) as one run.
void add_run(const std::vector<Piece>& pieces, std::size_t first, std::size_t last, int vector,
             Mergeable* result) {
  const int bytes = pieces[first].bytes;
  if (last - first < 2 || vector <= bytes) return;
  for (std::size_t k = first; k < last; ++k) result->places.push_back(pieces[k].place);
  // Whole vectors, and the rest in as few powers of two as possible.
  int left = bytes * static_cast<int>(last - first);
  for (int width = vector; width >= bytes; width /= 2) {
    result->merged += left / width;
    left %= width;
  }
}

// Calls visit(pieces, first, last) for each run of consecutive addresses.
template <typename Visit>
void each_run(const Dataflow& body, Op op, Visit visit) {
  std::map<Group, std::vector<Piece>> groups;
  std::vector<int> version(kRegisterSlots, 0);
  for (int p = 0; p < body.size(); ++p) {
    const SassInstruction& i = body.at(p);
    if (i.op == op && access_bits(i) < 8 * kVectorBytes) {
      const Address address = address_of(i);
      if (address.found && (address.base >= 0 || address.uniform >= 0)) {
        const int at = address.base >= 0 ? version[slot(address.base)] : 0;
        const std::string where =
            std::string(address.space) + "+" + std::to_string(address.uniform);
        groups[{address.base, at, access_bits(i), where, i.guard}].push_back(
            {address.offset, access_bits(i) / 8, p});
      }
    }
    for (const RegisterSpan& span : body.access(p).writes) {
      for (int r = span.first; r < std::min(span.first + span.count, kRegisterSlots); ++r) {
        ++version[slot(r)];
      }
    }
  }
  for (auto& [group, pieces] : groups) {
    std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
      return std::tie(a.offset, a.place) < std::tie(b.offset, b.place);
    });
    for (std::size_t first = 0; first < pieces.size();) {
      std::size_t last = first + 1;
      while (last < pieces.size() &&
             pieces[last].offset == pieces[last - 1].offset + pieces[last].bytes) {
        ++last;
      }
      visit(pieces, first, last);
      first = last;
    }
  }
}

bool is_set(const SassInstruction& i) { return contains(i.root, "SETP"); }

}  // namespace

Mergeable mergeable(const Dataflow& body, Op op, const std::vector<LaneAccess>& lanes) {
  Mergeable result;
  each_run(body, op, [&](const std::vector<Piece>& pieces, std::size_t first, std::size_t last) {
    const Piece& piece = pieces[first];
    add_run(pieces, first, last, widest(body, piece, lanes[slot(piece.place)]), &result);
  });
  return result;
}

std::vector<int> filled_gaps(const Dataflow& body, Op op, const std::vector<LaneAccess>& lanes) {
  std::vector<int> result;
  each_run(body, op, [&](const std::vector<Piece>& pieces, std::size_t first, std::size_t last) {
    const LaneAccess& access = lanes[slot(pieces[first].place)];
    const int bytes = pieces[first].bytes;
    const int distance = std::abs(access.stride);
    if (!access.known || distance <= std::max(bytes, 4)) return;
    if (bytes * static_cast<int>(last - first) < distance) return;
    for (std::size_t k = first; k < last; ++k) result.push_back(pieces[k].place);
  });
  return result;
}

std::vector<int> invariant_loads(const Dataflow& body, Op op, const std::vector<int>& all_of_loop) {
  std::vector<int> result;
  if (!body.loops()) return result;
  std::vector<bool> elsewhere(kRegisterSlots, false);  // written by an inner loop
  const std::vector<int>& own = body.body();
  for (const int index : all_of_loop) {
    const SassInstruction& i = body.function().code[slot(index)];
    const bool writes_shared = i.op == Op::kSharedStore || i.op == Op::kAsyncCopy ||
                               i.op == Op::kBulkCopy || i.op == Op::kSharedAtomic;
    if (op == Op::kSharedLoad && writes_shared) return result;
    if (std::binary_search(own.begin(), own.end(), index)) continue;
    for (const RegisterSpan& span : access_of(i).writes) {
      for (int r = span.first; r < std::min(span.first + span.count, kRegisterSlots); ++r) {
        elsewhere[slot(r)] = true;
      }
    }
  }
  // A value computed only from invariants is invariant; iterate to a fixed point.
  std::vector<bool> fixed(slot(body.size()), false);
  const auto settles = [&](int p, bool addresses_only) {
    for (const OperandUse& read : body.access(p).reads) {
      if (addresses_only && read.use != Use::kAddress) continue;
      for (int r = 0; r < read.registers.count; ++r) {
        if (elsewhere[slot(std::min(read.registers.first + r, kRegisterSlots - 1))]) return false;
      }
    }
    return std::all_of(body.reads(p).begin(), body.reads(p).end(), [&](const Dependence& d) {
      return (addresses_only && d.use != Use::kAddress) || fixed[slot(d.from)];
    });
  };
  for (bool grown = true; grown;) {
    grown = false;
    for (int p = 0; p < body.size(); ++p) {
      const Op kind = body.at(p).op;
      const bool pure = kind == Op::kConstantLoad || kind == Op::kInteger || kind == Op::kMove;
      if (fixed[slot(p)] || !pure || !settles(p, false)) continue;
      fixed[slot(p)] = true;
      grown = true;
    }
  }
  for (int p = 0; p < body.size(); ++p) {
    // A strong load is meant to be repeated: others may change the value.
    if (body.at(p).op == op && !body.at(p).has("STRONG") && settles(p, true)) result.push_back(p);
  }
  return result;
}

std::vector<int> address_arithmetic(const Dataflow& body) {
  // Backwards from final uses as data: values of stores and atomics, arithmetic, shuffles.
  std::vector<bool> payload(slot(body.size()), false);
  std::vector<int> work;
  const auto mark = [&](int p) {
    if (payload[slot(p)]) return;
    payload[slot(p)] = true;
    work.push_back(p);
  };
  const auto plain = [](Op op) {
    return op == Op::kInteger || op == Op::kMove || op == Op::kCount;
  };
  for (int p = 0; p < body.size(); ++p) {
    const Op op = body.at(p).op;
    if (plain(op) || op == Op::kBranch || op == Op::kExit || op == Op::kConverge) continue;
    if (op == Op::kSelect && is_set(body.at(p))) continue;
    mark(p);
  }
  while (!work.empty()) {
    const int p = work.back();
    work.pop_back();
    for (const Dependence& d : body.reads(p)) {
      if (d.use == Use::kData) mark(d.from);
    }
  }
  // Backwards from addresses, and from what counts iterations: it reads nothing but itself.
  std::vector<bool> addressing(slot(body.size()), false);
  const auto reach = [&](int p) {
    if (addressing[slot(p)]) return;
    addressing[slot(p)] = true;
    work.push_back(p);
  };
  for (int p = 0; p < body.size(); ++p) {
    const auto& reads = body.reads(p);
    const bool counts =
        !reads.empty() && std::all_of(reads.begin(), reads.end(),
                                      [&](const auto& d) { return d.from == p && d.carried; });
    if (counts) reach(p);
    for (const Dependence& d : reads) {
      if (d.use == Use::kAddress) reach(d.from);
    }
  }
  while (!work.empty()) {
    const int p = work.back();
    work.pop_back();
    for (const Dependence& d : body.reads(p)) {
      if (d.use != Use::kGuard) reach(d.from);
    }
  }
  const auto compares_addresses = [&](int p) {
    return is_set(body.at(p)) &&
           std::any_of(body.reads(p).begin(), body.reads(p).end(), [&](const Dependence& d) {
             return d.use == Use::kData && addressing[slot(d.from)];
           });
  };
  std::vector<int> result;
  for (int p = 0; p < body.size(); ++p) {
    if (payload[slot(p)] || body.at(p).op != Op::kInteger) continue;
    if (!addressing[slot(p)] && !compares_addresses(p)) continue;
    // A value that nothing in the loop reads leaves it: a result.
    if (!body.readers(p).empty()) result.push_back(p);
  }
  return result;
}

std::vector<int> updates(const Dataflow& body) {
  const auto computed_at = [&](int p) {
    std::set<std::pair<int, bool>> from;
    for (const Dependence& d : body.reads(p)) {
      if (d.use == Use::kAddress) from.insert({d.from, d.carried});
    }
    return from;
  };
  std::vector<int> result;
  for (int p = 0; p < body.size(); ++p) {
    if (body.at(p).op != Op::kGlobalStore) continue;
    const Address to = address_of(body.at(p));
    for (int q = 0; to.found && to.base >= 0 && q < body.size(); ++q) {
      if (body.at(q).op != Op::kGlobalLoad) continue;
      const Address from = address_of(body.at(q));
      if (from.base != to.base || from.offset != to.offset || from.uniform != to.uniform) continue;
      if (computed_at(p) != computed_at(q)) continue;
      result.push_back(p);
      break;
    }
  }
  return result;
}

std::vector<int> staged_copies(const Dataflow& body) {
  std::vector<int> result;
  for (int p = 0; p < body.size(); ++p) {
    if (body.at(p).op != Op::kGlobalLoad || body.readers(p).empty()) continue;
    const bool staged = std::all_of(
        body.readers(p).begin(), body.readers(p).end(), [&](const Dataflow::Reader& reader) {
          return reader.use == Use::kData && body.at(reader.place).op == Op::kSharedStore;
        });
    if (staged) result.push_back(p);
  }
  return result;
}

namespace {

// Whether an FFMA adds the other instruction's result, and does not multiply it.
bool adds(const SassInstruction& fma, const SassInstruction& other) {
  const std::vector<std::string_view> operands = split_operands(fma.operands);
  const std::vector<std::string_view> results = split_operands(other.operands);
  if (operands.size() != 4 || results.empty()) return false;
  std::string_view addend = operands[3];
  if (addend.starts_with("-")) addend.remove_prefix(1);
  return addend.substr(0, addend.find('.')) == results[0];
}

}  // namespace

std::vector<int> fusable_multiplies(const Dataflow& body) {
  constexpr int kLongest = 16;  // products of one sum
  std::vector<int> result;
  std::set<int> ended;  // adds: each can take one product in
  for (int p = 0; p < body.size(); ++p) {
    if (body.at(p).root != "FMUL") continue;
    int sum = p;
    for (int k = 0; k < kLongest && body.readers(sum).size() == 1; ++k) {
      const int next = body.readers(sum)[0].place;
      const SassInstruction& reader = body.at(next);
      if (reader.root == "FADD" && ended.insert(next).second) result.push_back(p);
      if (reader.root != "FFMA" || !adds(reader, body.at(sum))) break;
      sum = next;
    }
  }
  return result;
}

std::vector<int> inline_divisions(const Dataflow& body) {
  // quotient = high half of n * reciprocal; rest = n - quotient * d; then rest is compared with d.
  std::vector<int> result;
  const auto multiplies_back = [&](int p, int depth, const auto& self) -> int {
    for (const Dataflow::Reader& reader : body.readers(p)) {
      const SassInstruction& i = body.at(reader.place);
      if (i.root == "IMAD" && !i.has("MOV") && !i.has("WIDE") && !i.has("HI") && !i.has("IADD")) {
        return reader.place;
      }
      const bool negates = i.root == "IADD3" || i.root == "IADD" || i.root == "IMAD";
      if (depth == 0 && negates && contains(i.operands, "-R")) {
        const int found = self(reader.place, 1, self);
        if (found >= 0) return found;
      }
    }
    return -1;
  };
  for (int p = 0; p < body.size(); ++p) {
    const SassInstruction& i = body.at(p);
    if (i.root != "IMAD" || !i.has("HI") || !i.has("U32")) continue;
    const std::vector<std::string_view> operands = split_operands(i.operands);
    if (operands.size() != 4 || !operands[3].starts_with("RZ")) continue;
    const int rest = multiplies_back(p, 0, multiplies_back);
    if (rest < 0) continue;
    const bool compared = std::any_of(body.readers(rest).begin(), body.readers(rest).end(),
                                      [&](const Dataflow::Reader& reader) {
                                        const SassInstruction& c = body.at(reader.place);
                                        return c.root == "ISETP" && c.has("U32");
                                      });
    if (compared) result.push_back(p);
  }
  return result;
}

std::vector<int> half_conversions(const Dataflow& body) {
  std::vector<int> result;
  for (int p = 0; p < body.size(); ++p) {
    const SassInstruction& i = body.at(p);
    if (is_half_conversion(i)) {
      result.push_back(p);
      continue;
    }
    // bf16 is the upper half of fp32.
    const bool moves_up = (i.root == "IMAD" && contains(i.operands, ", 0x10000, RZ")) ||
                          (i.root == "SHF" && i.has("L") && contains(i.operands, ", 0x10, RZ")) ||
                          (i.root == "PRMT" && (contains(i.operands, " RZ, 0x5410, ") ||
                                                contains(i.operands, " RZ, 0x7610, "))) ||
                          (i.root == "LOP3" && contains(i.operands, ", 0xffff0000, RZ, 0xc0"));
    if (!moves_up || body.readers(p).empty()) continue;
    const bool as_fp32 = std::any_of(
        body.readers(p).begin(), body.readers(p).end(), [&](const Dataflow::Reader& reader) {
          const SassInstruction& use = body.at(reader.place);
          return use.op == Op::kFp32 || use.op == Op::kSpecial || use.op == Op::kPack ||
                 (use.op == Op::kSelect && use.root.starts_with("F"));
        });
    if (as_fp32) result.push_back(p);
  }
  return result;
}

bool is_half_math(const SassInstruction& i) {
  if (i.op != Op::kHalf || is_half_conversion(i)) return false;
  // "HFMA2.MMA R7, -RZ, RZ, 1.875, 0" only loads a constant into a register.
  return !contains(i.operands, "-RZ, RZ");
}

bool is_scalar_half(const SassInstruction& i) {
  if (!is_half_math(i)) return false;
  bool any = false;
  const std::vector<std::string_view> operands = split_operands(i.operands);
  for (std::size_t k = 1; k < operands.size(); ++k) {
    const int reg = register_of(operands[k]);
    if (reg < 0 || reg >= kFirstPredicate) continue;
    any = true;
    if (!contains(operands[k], ".H0_H0") && !contains(operands[k], ".H1_H1")) return false;
  }
  return any;
}

bool is_half_conversion(const SassInstruction& i) {
  if (i.root == "HADD2" && i.has("F32")) return true;
  if (i.root == "F2FP") return !i.has("UNPACK_B") && !i.has("E4M3") && !i.has("E5M2");
  return i.root == "F2F" && (i.has("F16") || i.has("BF16")) && !i.has("F64");
}

bool is_scalar_half_conversion(const SassInstruction& i) {
  if (i.root == "F2F") return is_half_conversion(i);
  if (i.root != "F2FP" || !is_half_conversion(i)) return false;
  const std::vector<std::string_view> operands = split_operands(i.operands);
  return operands.size() > 1 && operands[1] == "RZ";
}

}  // namespace kernelpro
