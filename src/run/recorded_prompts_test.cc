// SPDX-License-Identifier: Apache-2.0
// The prompts of recorded runs (results/prompts, results/exchange), word for word:
// docs/prompts/*.md, refreshed by KERNELPRO_REFRESH=1. Their diagnoses are the recorded ones, so
// that a new tool changes no text.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/files.h"
#include "base/text.h"
#include "core/candidate/language.h"
#include "diagnose/diagnose.h"
#include "run/store/ledger.h"
#include "run/store/store.h"
#include "task/load/header.h"
#include "write/prompt/parts.h"
#include "write/prompt/prompt.h"
#include "write/prompt/recall.h"

namespace kernelpro {
namespace {

struct RecordedPrompts : ::testing::Test {
  StoredRun run;
  ProposalRequest request;
  Prompts prompts;

  // The request about `parent`, once the first `evaluated` candidates have results.
  void open(const std::string& name, std::int64_t parent, int evaluated, bool anew = false) {
    const auto store = Store::open(
        std::string(KERNELPRO_SOURCE_DIR) + "/results/" + name + ".jsonl", Store::Mode::kRead);
    ASSERT_TRUE(store) << store.error().text();
    auto whole = (*store)->whole();
    ASSERT_TRUE(whole) << whole.error().text();
    run = std::move(*whole);
    std::sort(run.candidates.begin(), run.candidates.end(),
              [](const auto& a, const auto& b) { return a.order < b.order; });
    Ledger ledger;
    for (const StoredCandidate& each : run.candidates) {
      if (!each.evaluated || ledger.evaluations() == evaluated) continue;
      Known known = each.known;
      if (anew) known.diagnosis = diagnose(each.evidence);
      ledger.record(std::move(known));
    }
    ASSERT_EQ(ledger.evaluations(), evaluated);
    request = {};
    request.task = &run.header.task;
    request.target = run.header.target;
    request.machine = run.header.machine;
    request.history = ledger.history();
    request.baseline = ledger.baseline();
    request.best = ledger.best();
    request.start = ledger.start();
    request.parent = ledger.find(parent);
    request.evaluations_left = 60 - evaluated;
    ASSERT_NE(request.parent, nullptr);
    const Case* largest = largest_timed(run.header.task, run.header.target);
    ASSERT_NE(largest, nullptr);
    request.task_header = task_header(run.header.task, *largest, run.header.target);
  }

  std::string repair(std::int64_t failed) {
    PromptFields fields = prompt_fields(request, prompts);
    for (const KnownPtr& known : request.history) {
      if (known->id != failed) continue;
      fields["failed"] = "candidate " + std::to_string(failed);
      fields["idea"] = known->candidate.origin.idea;
      fields["failure"] = failure_text(known->evaluation.outcome);
      fields["cures"] = cures_text(request, fields["failure"]);
      fields["broken"] = fenced(known->candidate.source, "cuda");
    }
    // What every request to a model begins with, and the repair itself.
    return prompts.fill("task", fields) + "\n---\n\n" + prompts.fill("fixer", fields);
  }
};

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(KERNELPRO_SOURCE_DIR) + "/docs/prompts/" + name + ".md";
  if (std::getenv("KERNELPRO_REFRESH") != nullptr) {
    ASSERT_TRUE(make_dirs(std::string(KERNELPRO_SOURCE_DIR) + "/docs/prompts"));
    ASSERT_TRUE(write_file(path, text));
  }
  const auto expected = read_file(path);
  ASSERT_TRUE(expected) << "make it with KERNELPRO_REFRESH=1";
  EXPECT_EQ(text, *expected) << "refresh with KERNELPRO_REFRESH=1 if this is meant";
}

TEST_F(RecordedPrompts, OfAStart) {
  open("prompts/start", 1, 1);
  const std::string text = exchange_prompt(request, "0001", prompts);
  expect_golden("start", text);
  EXPECT_TRUE(contains(text, "x on another unit"));
}

TEST_F(RecordedPrompts, OfAMidwayKernel) {
  open("prompts/midway", 3, 3);
  const std::string text = exchange_prompt(request, "0002", prompts);
  expect_golden("midway", text);
  EXPECT_TRUE(contains(text, "What the last change did"));
}

TEST_F(RecordedPrompts, OfANearlyDoneKernel) {
  open("prompts/nearly-done", 3, 3);
  expect_golden("nearly-done", exchange_prompt(request, "0002", prompts));
}

TEST_F(RecordedPrompts, OfAFailure) {
  open("exchange/gemm_bf16", 1, 2);
  expect_golden("failure", repair(2));
}

// With the diagnoses of today, whatever they say: what matters comes first, craft last, and no part
// is longer than it may be.
TEST_F(RecordedPrompts, WhatMattersComesFirst) {
  open("exchange/conv2d_relu_maxpool", 7, 7, true);
  const std::string text = exchange_prompt(request, "0006", prompts);
  std::size_t last = 0;
  for (const char* part :
       {"## Where it stands", "Left to win: ", "53 evaluations remain",
        "The best so far is candidate 6", "## Diagnosis", "Where the time goes",
        "## What to try this time", "## What was tried", "## What it computes", "## The rules",
        "## What to return", "## The machine", "## What fast kernels do"}) {
    const std::size_t at = text.find(part);
    ASSERT_NE(at, std::string::npos) << part << " is missing";
    EXPECT_GT(at, last) << part;
    last = at;
  }
  const PromptFields fields = prompt_fields(request, prompts);
  for (const PartLimit& limit : part_limits()) {
    const auto field = fields.find(std::string(limit.field));
    if (field == fields.end()) continue;
    EXPECT_LE(field->second.size(), limit.bytes + 100) << limit.field;
  }
}

}  // namespace
}  // namespace kernelpro
