// SPDX-License-Identifier: Apache-2.0
#include "diagnose/account/mix.h"

#include <algorithm>
#include <initializer_list>

namespace kernelpro {

namespace {

struct MixRow {
  WorkKind kind;
  std::initializer_list<const char*> counted;
  const char* without = nullptr;  // counted in another row
};

constexpr const char* kAddresses = "sass.hot.address";
const MixRow kMixRows[] = {
    {WorkKind::kMatrix, {"sass.hot.hgmma", "sass.hot.hmma"}},
    {WorkKind::kFp32, {"sass.hot.ffma"}},
    {WorkKind::kFp64, {"sass.hot.fp64"}, "sass.hot.fp64_conversions"},
    {WorkKind::kHalf, {"sass.hot.half_math"}},
    {WorkKind::kSpecial, {"sass.hot.mufu"}},
    {WorkKind::kHalfConversion, {"sass.hot.half_conversions"}},
    {WorkKind::kConversion, {"sass.hot.conversions"}},
    {WorkKind::kAddress, {kAddresses}},
    {WorkKind::kInteger, {"sass.hot.integer"}, kAddresses},
    {WorkKind::kMove, {"sass.hot.moves"}},
    {WorkKind::kSelect, {"sass.hot.selects"}},
    {WorkKind::kShared, {"sass.hot.shared_loads", "sass.hot.shared_stores"}},
    {WorkKind::kGlobal, {"sass.hot.global_loads", "sass.hot.global_stores"}},
    {WorkKind::kLocal, {"sass.hot.local_loads", "sass.hot.local_stores"}},
    {WorkKind::kShuffle, {"sass.hot.shuffles", "sass.hot.votes"}},
    {WorkKind::kBranch, {"sass.hot.branches"}},
};

// By machine code.
void add_hot_loops(const Evidence& facts, KernelAccount* account) {
  const auto count = [&](const char* name) { return facts.get(name).value_or(0); };
  const double all = count("sass.hot.instructions");
  const double matrix = count("sass.hgmma") + count("sass.hmma");
  if (all < 1 || (matrix > 0 && count("sass.hot.hgmma") + count("sass.hot.hmma") <= 0)) return;
  account->hot_instructions = all;
  for (const MixRow& row : kMixRows) {
    double counted = row.without != nullptr ? -count(row.without) : 0;
    for (const char* name : row.counted) counted += count(name);
    if (counted >= kLeastMix * all) account->mix.push_back({row.kind, counted / all});
  }
}

}  // namespace

void add_mix(const Evidence& facts, KernelAccount* account) {
  if (facts.places && !facts.places->issued.empty()) {
    for (const WorkShare& each : facts.places->issued) {
      if (each.share >= kLeastMix) account->mix.push_back(each);
    }
    account->regions = facts.places->regions;
    account->roles = facts.places->roles;
  } else {
    add_hot_loops(facts, account);
  }
  std::stable_sort(account->mix.begin(), account->mix.end(),
                   [](const WorkShare& a, const WorkShare& b) { return a.share > b.share; });
}

}  // namespace kernelpro
