// SPDX-License-Identifier: Apache-2.0
#include "profile/sass/dataflow.h"

#include <algorithm>

namespace kernelpro {

namespace {

std::size_t slot(int index) { return static_cast<std::size_t>(index); }

// Visits the registers of a span that exist.
template <typename Visit>
void each_register(const RegisterSpan& span, Visit visit) {
  for (int r = span.first; r < std::min(span.first + span.count, kRegisterSlots); ++r) visit(r);
}

}  // namespace

Dataflow::Dataflow(const SassFunction& function, const std::vector<int>& body, bool loops)
    : function_(function),
      body_(body),
      loops_(loops),
      reads_(body.size()),
      readers_(body.size()),
      last_(kRegisterSlots, -1) {
  access_.reserve(body.size());
  for (int p = 0; p < size(); ++p) {
    access_.push_back(access_of(at(p)));
    for (const RegisterSpan& span : access_.back().writes) {
      each_register(span, [&](int r) { last_[slot(r)] = p; });
    }
  }
  std::vector<int> writer(kRegisterSlots, -1);
  for (int p = 0; p < size(); ++p) {
    std::vector<Dependence>& mine = reads_[slot(p)];
    for (const OperandUse& read : access(p).reads) {
      each_register(read.registers, [&](int r) {
        const bool carried = writer[slot(r)] < 0;
        const int from = carried ? last_[slot(r)] : writer[slot(r)];
        if (from < 0 || (carried && !loops_)) return;
        const bool known = std::any_of(mine.begin(), mine.end(), [&](const Dependence& d) {
          return d.from == from && d.carried == carried && d.use == read.use;
        });
        if (known) return;
        mine.push_back({from, carried, read.use});
        readers_[slot(from)].push_back({p, read.use});
      });
    }
    for (const RegisterSpan& span : access(p).writes) {
      each_register(span, [&](int r) { writer[slot(r)] = p; });
    }
  }
}

}  // namespace kernelpro
