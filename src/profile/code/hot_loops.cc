// SPDX-License-Identifier: Apache-2.0
#include "profile/code/hot_loops.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "profile/code/asm_program.h"

namespace kernelpro {

namespace {

// Regions with at least this share of the heaviest one's weight are hot too.
constexpr double kHotShare = 0.2;
// A packed loop with this much arithmetic is a main loop, wherever edges are written back.
constexpr int kLargePacked = 8;
constexpr std::size_t kMaxText = 6000;
constexpr int kMaxCallers = 4;  // levels of callers searched

// Gives fused and separate forms of a computation the same name.
std::set<std::string_view> plain(const std::set<std::string_view>& operations) {
  std::set<std::string_view> result;
  for (const std::string_view each : operations) {
    const bool fused = contains(each, "fm") || contains(each, "fnm");
    if (fused) result.insert("mul");
    result.insert(fused || each == "sub" ? "add" : each);
  }
  return result;
}

bool does_all(const AsmRegion& main, const AsmRegion& rest) {
  const auto of_main = plain(main.operations), of_rest = plain(rest.operations);
  return std::includes(of_main.begin(), of_main.end(), of_rest.begin(), of_rest.end());
}

class Analysis {
 public:
  explicit Analysis(const std::vector<AsmFunction>& functions)
      : program_(functions), functions_(functions), regions_(program_.regions()) {}

  AsmMix mix() {
    mark_rests();
    AsmMix mix;
    double heaviest = 0, all = 0, scalar = 0;
    bool loops = false;
    const AsmRegion* main = nullptr;
    for (const AsmRegion& r : regions_) {
      loops = loops || r.loop >= 0;
      if (r.rest) continue;
      heaviest = std::max(heaviest, r.weight);
      all += r.weight;
      if (!r.arithmetic()) continue;
      const double part = r.weight * r.scalar_part();
      scalar += part;
      if (main == nullptr || part > main->weight * main->scalar_part()) main = &r;
    }
    mix.scalar_share = all > 0 ? scalar / all : 0;
    mix.packed_version = main != nullptr && has_packed_version(*main);
    for (const AsmRegion& r : regions_) {
      // Code around a packed loop is often an unrolled remainder: most of it does not run.
      const double least = has_packed_loop(r) ? heaviest : kHotShare * heaviest;
      const bool hot = !r.rest && r.weight >= least;
      if (loops && (!hot || (!r.arithmetic() && !innermost(r)))) continue;
      add(r, &mix);
      mix.loops += r.loop >= 0;
    }
    for (std::size_t f = 0; f < functions_.size(); ++f) {
      if (program_.routine(f).runs == 0) continue;
      for (const AsmInstruction& i : functions_[f].code) {
        mix.streaming_stores += is_streaming_store(i.mnemonic);
      }
    }
    mix.text = clip(mix.text, kMaxText);
    return mix;
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  const Loop* loop_of(const AsmRegion& r) const { return program_.loop_of(r); }
  bool innermost(const AsmRegion& r) const { return r.loop >= 0 && loop_of(r)->innermost; }

  void mark_rests() {
    for (AsmRegion& s : regions_) {
      if (s.scalar == 0 || s.is_packed()) continue;
      for (const AsmRegion& p : regions_) {
        if (!p.is_packed() || !(p.loop < 0 ? is_edge_of(s, p) : is_rest(s, p))) continue;
        s.rest = true;
        break;
      }
    }
    // Loops that contain only remainders count as remainders.
    std::vector<bool> around(regions_.size(), false);
    for (std::size_t i = 0; i < regions_.size(); ++i) around[i] = only_around_rests(regions_[i]);
    for (std::size_t i = 0; i < regions_.size(); ++i) {
      if (around[i]) regions_[i].rest = true;
    }
  }

  bool only_around_rests(const AsmRegion& outer) const {
    bool any = false;
    if (outer.arithmetic()) return false;
    for (const AsmRegion& r : regions_) {
      if (r.function != outer.function || r.loop == outer.loop || !r.arithmetic()) continue;
      int l = r.loop;
      while (l >= 0 && l != outer.loop) l = program_.routine(r.function).loops[at(l)].parent;
      if (l != outer.loop) continue;
      if (!r.rest) return false;
      any = true;
    }
    return any;
  }

  bool is_rest(const AsmRegion& s, const AsmRegion& p) const {
    const bool same = s.function == p.function;
    // After the loop, the lanes of a vector on the stack are combined.
    if (same && s.loop >= 0 && s.math == 0 && s.stack && !p.stack) return true;
    // A tile accumulated in registers, and the scalar write-back of edge tiles.
    if (same && s.math == 0 && p.packed >= kLargePacked && !p.stores && s.stores && s.loop >= 0 &&
        writes_packed(s)) {
      return true;
    }
    // A remainder without a loop, unrolled after the main loop.
    if (same && s.math == 0 && is_around(s, p) && does_all(loops_in(s), s)) return true;
    if (s.loop < 0) return false;
    if (is_edge(s, p)) return true;
    if (s.induction.advance > p.induction.advance && p.induction.advance > 0) return false;
    if (goes_on(s, p) || (same && goes_on(p, s))) return true;
    return s.math == 0 && does_all(p, s) && alternatives(s, p);
  }

  // The edges of tiles.
  static bool is_edge(const AsmRegion& s, const AsmRegion& p) {
    return s.loop >= 0 && s.math == 0 && p.packed >= kLargePacked &&
           plain(p.operations) == plain(s.operations);
  }

  // The same for a tile without a loop, in a function that a loop calls.
  bool is_edge_of(const AsmRegion& s, const AsmRegion& p) const {
    return program_.routine(p.function).runs > 1 && is_edge(s, p);
  }

  bool is_around(const AsmRegion& outer, const AsmRegion& inner) const {
    return outer.function == inner.function && loop_of(inner)->parent == outer.loop;
  }

  bool has_packed_loop(const AsmRegion& outer) const {
    return std::any_of(regions_.begin(), regions_.end(), [&](const AsmRegion& r) {
      return r.is_packed() && r.loop >= 0 && is_around(outer, r);
    });
  }

  // The packed loops directly inside a region, combined.
  AsmRegion loops_in(const AsmRegion& outer) const {
    AsmRegion all;
    for (const AsmRegion& r : regions_) {
      if (r.is_packed() && r.loop >= 0 && is_around(outer, r))
        all.operations.merge(std::set(r.operations));
    }
    return all;
  }

  // Whether the function does all of the scalar loop's operations in packed form anywhere.
  bool writes_packed(const AsmRegion& s) const {
    AsmRegion all;
    all.operations = program_.routine(s.function).packed;
    return does_all(all, s);
  }

  // Does loop `s` begin where loop `p` ended, or at a count rounded to p's vectors?
  bool goes_on(const AsmRegion& s, const AsmRegion& p) const {
    const Loop* loop = loop_of(s);
    std::set<int> begins = s.induction.bases;
    for (const auto& [place, step] : s.induction.steps) begins.insert(place);
    return std::any_of(begins.begin(), begins.end(), [&](int place) {
      return goes_on(s.function, loop->header, place, s, p, 0);
    });
  }

  bool goes_on(std::size_t f, int at_instruction, int place, const AsmRegion& s, const AsmRegion& p,
               int level) const {
    const ValueOrigin origin = program_.routine(f).values->origin(at_instruction, place);
    if (f == p.function) {
      // p itself, or enclosing loops that do not contain s.
      for (int l = p.loop; l >= 0; l = program_.routine(f).loops[at(l)].parent) {
        const std::vector<int>& body = program_.routine(f).loops[at(l)].body;
        if (std::binary_search(body.begin(), body.end(), at_instruction)) break;
        for (const int definition : origin.definitions) {
          if (std::binary_search(body.begin(), body.end(), definition)) return true;
        }
      }
    }
    const long long lanes = std::max(p.bits, 128) / 64;
    if (s.scalar > 0 && !s.is_packed() && origin.multiple >= lanes && beside(s, p)) return true;
    if (level >= kMaxCallers) return false;
    for (const AsmSite& site : program_.routine(f).callers) {
      if (!is_call(functions_[site.function].code[at(site.at)].mnemonic)) continue;
      for (const int parameter : origin.parameters) {
        if (goes_on(site.function, site.at, parameter, s, p, level + 1)) return true;
      }
    }
    return false;
  }

  // In the same loop, or in separate functions.
  bool beside(const AsmRegion& s, const AsmRegion& p) const {
    if (s.function != p.function) return true;
    return loop_of(s)->parent == loop_of(p)->parent;
  }

  // Places that represent the region: its header, and the call sites of its function.
  std::vector<AsmSite> places(const AsmRegion& r) const {
    std::vector<AsmSite> result{{r.function, loop_of(r)->header}};
    for (std::size_t level = 0, begin = 0; level < kMaxCallers; ++level) {
      const std::size_t end = result.size();
      for (std::size_t i = begin; i < end && result.size() < 32; ++i) {
        const auto& callers = program_.routine(result[i].function).callers;
        result.insert(result.end(), callers.begin(), callers.end());
      }
      begin = end;
    }
    return result;
  }

  // Neither runs after the other within one iteration of their common loop.
  bool alternatives(const AsmRegion& s, const AsmRegion& p) const {
    for (const AsmSite& a : places(s)) {
      for (const AsmSite& b : places(p)) {
        if (a.function != b.function || a.at == b.at) continue;
        const AsmRoutine& in = program_.routine(a.function);
        int around = -1;
        for (int l = in.owner[at(a.at)]; l >= 0 && around < 0; l = in.loops[at(l)].parent) {
          const std::vector<int>& body = in.loops[at(l)].body;
          if (std::binary_search(body.begin(), body.end(), b.at)) around = l;
        }
        std::vector<int> barriers;
        if (around >= 0) barriers = in.loops[at(around)].entries;
        for (const int each : barriers) {
          if (each == a.at || each == b.at) return false;
        }
        return !in.values->after(a.at, barriers)[at(b.at)] &&
               !in.values->after(b.at, barriers)[at(a.at)];
      }
    }
    return false;
  }

  // Might a packed loop run instead?
  bool has_packed_version(const AsmRegion& s) const {
    return std::any_of(regions_.begin(), regions_.end(), [&](const AsmRegion& p) {
      if (!p.is_packed() || p.loop < 0) return false;
      const bool plain_loop = s.packed == 0 && s.math == 0 && s.loop >= 0;
      return program_.exhausted() || (plain_loop && does_all(p, s));
    });
  }

  void add(const AsmRegion& region, AsmMix* mix) const {
    const AsmFunction& function = functions_[region.function];
    mix->text += function.name + ":\n";
    mix->vector_bits = std::max(mix->vector_bits, region.bits);
    for (const int i : region.own) {
      const AsmInstruction& instruction = function.code[at(i)];
      const Arithmetic a = arithmetic(instruction.mnemonic);
      ++mix->instructions;
      mix->packed_fp += a.kind == Fp::kPacked;
      mix->scalar_fp += a.kind == Fp::kScalar;
      mix->calls += is_call(instruction.mnemonic);
      if (mix->text.size() < kMaxText) {
        mix->text += "  " + instruction.mnemonic + " " + instruction.operands + "\n";
      }
    }
  }

  AsmProgram program_;
  const std::vector<AsmFunction>& functions_;
  std::vector<AsmRegion>& regions_;
};

}  // namespace

AsmMix hot_mix(const std::vector<AsmFunction>& functions) { return Analysis(functions).mix(); }

void add_mix(const AsmMix& mix, Evidence* evidence) {
  const std::pair<const char*, double> facts[] = {
      {"instructions", mix.instructions},
      {"packed_fp", mix.packed_fp},
      {"scalar_fp", mix.scalar_fp},
      {"vector_bits", mix.vector_bits},
      {"streaming_stores", mix.streaming_stores},
      {"calls", mix.calls},
      {"scalar_share", mix.scalar_share},
      {"packed_version", mix.packed_version ? 1 : 0},
  };
  for (const auto& [name, value] : facts) {
    evidence->set(std::string("cpu.asm.hot.") + name, value, "objdump");
  }
  evidence->texts["hot loops"] = mix.text;
}

}  // namespace kernelpro
