// SPDX-License-Identifier: Apache-2.0
#include "diagnose/account/mix.h"

#include <algorithm>
#include <initializer_list>

namespace kernelpro {

namespace {

struct MixRow {
  std::string_view what;
  std::initializer_list<const char*> counted;
  const char* without = nullptr;  // counted in another row
};

constexpr const char* kAddresses = "sass.hot.address";
const MixRow kMixRows[] = {
    {"matrix products", {"sass.hot.hgmma", "sass.hot.hmma"}},
    {"fp32 arithmetic", {"sass.hot.ffma"}},
    {"fp64 arithmetic", {"sass.hot.fp64"}, "sass.hot.fp64_conversions"},
    {"half arithmetic", {"sass.hot.half_math"}},
    {"special functions", {"sass.hot.mufu"}},
    {"conversions of halves", {"sass.hot.half_conversions"}},
    {"other conversions", {"sass.hot.conversions"}},
    {"addresses and loop control", {kAddresses}},
    {"other integer arithmetic", {"sass.hot.integer"}, kAddresses},
    {"copies between registers", {"sass.hot.moves"}},
    {"comparisons and selections", {"sass.hot.selects"}},
    {"shared-memory accesses", {"sass.hot.shared_loads", "sass.hot.shared_stores"}},
    {"global accesses", {"sass.hot.global_loads", "sass.hot.global_stores"}},
    {"local-memory accesses", {"sass.hot.local_loads", "sass.hot.local_stores"}},
    {"shuffles and votes", {"sass.hot.shuffles", "sass.hot.votes"}},
    {"branches", {"sass.hot.branches"}},
};

}  // namespace

void add_mix(const Evidence& facts, KernelAccount* account) {
  const auto count = [&](const char* name) { return facts.get(name).value_or(0); };
  const double all = count("sass.hot.instructions");
  const double matrix = count("sass.hgmma") + count("sass.hmma");
  if (all < 1 || (matrix > 0 && count("sass.hot.hgmma") + count("sass.hot.hmma") <= 0)) return;
  account->hot_instructions = all;
  for (const MixRow& row : kMixRows) {
    double counted = row.without != nullptr ? -count(row.without) : 0;
    for (const char* name : row.counted) counted += count(name);
    if (counted >= kLeastMix * all) account->mix.push_back({std::string(row.what), counted / all});
  }
  std::stable_sort(
      account->mix.begin(), account->mix.end(),
      [](const InstructionShare& a, const InstructionShare& b) { return a.share > b.share; });
}

}  // namespace kernelpro
