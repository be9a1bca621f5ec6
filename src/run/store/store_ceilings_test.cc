// SPDX-License-Identifier: Apache-2.0
// What is stored was observed; the ceilings are the machine's, and better ones apply to everything.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "base/files.h"
#include "base/text.h"
#include "core/evidence/rates.h"
#include "run/store/store.h"
#include "run/store/testing.h"

namespace kernelpro {
namespace {

Machine machine_at(double copy) {
  Machine machine = storing::header().machine;
  machine.ceilings.copy_bytes_per_s = copy;
  machine.ceilings.fma_flops_per_s = 1e11;
  return machine;
}

Evidence observed() {
  Evidence e;
  e.set("task.compulsory_bytes", 1e6, "task");
  e.set("timing.median", 200, "timing");
  return e;
}

Diagnosis called(const char* summary) {
  Diagnosis diagnosis;
  diagnosis.summary = summary;
  return diagnosis;
}

// A run on a machine at 1e10 byte/s with two evaluated candidates, and this evidence of the second.
std::unique_ptr<Store> run_with(const std::string& folder, const Evidence& second) {
  RunHeader header = storing::header();
  header.machine = machine_at(1e10);
  auto store = Store::open(folder, Store::Mode::kCreate, &header);
  EXPECT_TRUE(store) << store.error().text();
  EXPECT_TRUE((*store)->add({storing::candidate(1), storing::candidate(2)}));
  EXPECT_TRUE(
      (*store)->finish(1, Evaluation{CompileError{"bad"}, 1, 0, "", ""}, {}, called("bad"), 1));
  EXPECT_TRUE((*store)->finish(2, storing::correct(200), second, called("as before"), 2));
  return std::move(*store);
}

std::string stored_text(const std::string& folder) {
  sqlite3* db = nullptr;
  EXPECT_EQ(sqlite3_open(store_path(folder).c_str(), &db), SQLITE_OK);
  std::string text;
  const auto take = [](void* to, int, char** values, char**) {
    *static_cast<std::string*>(to) = values[0];
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(db, "SELECT json FROM evidence WHERE candidate = 2", take, &text, nullptr),
            SQLITE_OK);
  sqlite3_close(db);
  return text;
}

TEST(StoredCeilings, BetterOnesApplyToEvidenceThatIsNotRewritten) {
  const TempDir dir;
  const auto store = run_with(dir.path(), observed());
  const Evidence first = store->candidate(2, true)->evidence;
  EXPECT_EQ(first.get("ceiling.copy_bandwidth"), 1e10);
  EXPECT_DOUBLE_EQ(first.get("roofline.memory_floor").value_or(0), 100);
  EXPECT_TRUE(store->candidate(1, true)->evidence.items().empty()) << "nothing was observed";
  const std::string text = stored_text(dir.path());
  EXPECT_FALSE(contains(text, "ceiling.")) << text;

  const Machine better = machine_at(2e10);
  ASSERT_TRUE(store->revise({{2, called("anew"), {}}}, &better));
  const auto all = store->candidates();
  ASSERT_TRUE(all) << all.error().text();
  EXPECT_EQ(all->at(1).known.diagnosis.summary, "anew");
  EXPECT_EQ(all->at(1).evidence.get("ceiling.copy_bandwidth"), 2e10);
  EXPECT_DOUBLE_EQ(all->at(1).evidence.get("roofline.memory_floor").value_or(0), 50);
  EXPECT_EQ(store->header()->machine.ceilings.copy_bytes_per_s, 2e10);
  EXPECT_EQ(stored_text(dir.path()), text);
}

// Stores of earlier versions, and runs that were read from text, have ceilings in their evidence.
TEST(StoredCeilings, EvidenceWithItsOwnKeepsThemUntilThereAreBetterOnes) {
  const TempDir dir;
  const Evidence own = at_ceilings(machine_at(1.004e10), observed());
  const auto store = run_with(dir.path(), own);
  EXPECT_EQ(evidence_to_json(store->candidate(2, true)->evidence), evidence_to_json(own));
  ASSERT_TRUE(store->revise({{2, called("observed again"), {}}}));
  EXPECT_EQ(evidence_to_json(store->candidate(2, true)->evidence), evidence_to_json(own));

  const Machine better = machine_at(2e10);
  ASSERT_TRUE(store->revise({{2, called("anew"), {}}}, &better));
  EXPECT_EQ(evidence_to_json(store->candidate(2, true)->evidence),
            evidence_to_json(at_ceilings(better, observed())));
}

TEST(StoredCeilings, WhatIsObservedAgainReplacesEvidence) {
  const TempDir dir;
  const auto store = run_with(dir.path(), observed());
  Evidence again = observed();
  again.set("dram__bytes_read.sum", 4096, "counters");
  ASSERT_TRUE(store->revise({{2, called("with counters"), again}}));
  const auto read = store->candidate(2, true);
  EXPECT_EQ(read->evidence.get("dram__bytes_read.sum"), 4096);
  EXPECT_EQ(read->evidence.get("ceiling.copy_bandwidth"), 1e10);
}

}  // namespace
}  // namespace kernelpro
