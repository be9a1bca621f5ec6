// SPDX-License-Identifier: Apache-2.0
#include "write/prompt/focus.h"

#include <gtest/gtest.h>

#include <memory>

#include "write/testing.h"

namespace kernelpro {
namespace {

using proposing::finding;

KnownPtr attempt(std::int64_t id, std::int64_t parent, double us, const std::string& follows = "") {
  Known k;
  k.id = id;
  k.candidate.origin.parent = parent;
  k.candidate.source = "source " + std::to_string(id);
  if (!follows.empty()) k.candidate.origin.answers = {follows, "vectorize"};
  Correct correct;
  correct.timings = {{"only", us, us, us, 10, ""}};
  k.evaluation.outcome = correct;
  k.diagnosis.findings = {finding("scalar-loads", {"vectorize"}),
                          finding("one-thread-busy", {"threads"})};
  return std::make_shared<const Known>(k);
}

std::vector<std::string> to_answer(const ProposalRequest& request) {
  std::vector<std::string> tools;
  for (const Finding* each : findings_to_answer(request)) tools.push_back(each->tool);
  return tools;
}

// Both findings promise 2x.
TEST(Focus, WhatBroughtLittleIsNoLongerOrdered) {
  ProposalRequest request;
  request.parent = attempt(1, 0, 100);
  request.history = {request.parent};
  EXPECT_EQ(to_answer(request), (std::vector<std::string>{"scalar-loads", "one-thread-busy"}));
  EXPECT_EQ(brought_text(request), "");
  request.history.push_back(attempt(2, 1, 102, "scalar-loads"));
  EXPECT_EQ(to_answer(request), std::vector<std::string>{"one-thread-busy"});
  EXPECT_EQ(brought_text(request),
            "What its findings brought so far in this run: scalar-loads promised 2x, and brought "
            "0.98x.\n");
  // One that brought something is worth another attempt.
  request.history.push_back(attempt(3, 1, 80, "scalar-loads"));
  EXPECT_EQ(to_answer(request).size(), 2u);
  EXPECT_NE(brought_text(request).find("brought 0.98x and 1.25x"), std::string::npos);
  request.memory = false;
  request.history.pop_back();
  EXPECT_EQ(to_answer(request).size(), 2u) << "a run without memory remembers nothing";
}

TEST(Focus, WhatWasAnsweredIsNotAskedForAgain) {
  ProposalRequest request;
  request.parent = attempt(1, 0, 100);
  request.history = {request.parent, attempt(2, 1, 55, "scalar-loads")};
  EXPECT_EQ(to_answer(request), std::vector<std::string>{"one-thread-busy"});
  request.parent = request.history[1];
  EXPECT_EQ(to_answer(request).size(), 2u) << "another source may have the flaw anew";
}

TEST(Focus, OneBadAnswerElsewhereDoesNotEndAFinding) {
  ProposalRequest request;
  request.history = {attempt(1, 0, 100), attempt(2, 1, 103, "scalar-loads")};
  request.parent = request.history[0];
  EXPECT_EQ(to_answer(request), std::vector<std::string>{"one-thread-busy"});
  request.parent = request.history[1];
  EXPECT_EQ(to_answer(request).size(), 2u) << "it may have been written badly";
  request.history.push_back(attempt(3, 1, 101, "scalar-loads"));
  EXPECT_EQ(to_answer(request), std::vector<std::string>{"one-thread-busy"});
}

// The tuner names the finding whose tag its knob has; what it tries is the same source.
TEST(Focus, OtherSettingsOfASourceAnswerNothing) {
  ProposalRequest request;
  request.parent = attempt(1, 0, 100);
  Known tuned = *attempt(2, 1, 100, "scalar-loads");
  tuned.candidate.source = request.parent->candidate.source;
  request.history = {request.parent, std::make_shared<const Known>(tuned)};
  EXPECT_EQ(to_answer(request).size(), 2u);
  EXPECT_EQ(brought_text(request), "");
  // What an answer is worth, its best setting says.
  request.history = {request.parent, attempt(2, 1, 100, "scalar-loads")};
  Known faster = *attempt(3, 2, 70);
  faster.candidate.source = request.history[1]->candidate.source;
  request.history.push_back(std::make_shared<const Known>(faster));
  EXPECT_EQ(to_answer(request).size(), 2u);
  EXPECT_NE(brought_text(request).find("brought 1.43x"), std::string::npos);
}

TEST(Focus, ARequestNamesTheCauseInOneSentence) {
  Finding cause;
  cause.tool = "scalar-loads";
  cause.cause = "At `f(a. b)` 3.5 loads are narrow. More stands in the diagnosis.";
  EXPECT_EQ(focus_text(cause),
            "Answer the finding scalar-loads: At `f(a. b)` 3.5 loads are narrow.");
}

TEST(Focus, WhatFailedSaysNothingOfItsFinding) {
  ProposalRequest request;
  request.parent = attempt(1, 0, 100);
  Known failed = *attempt(2, 1, 1, "scalar-loads");
  failed.evaluation.outcome = WrongResult{};
  request.history = {request.parent, std::make_shared<const Known>(failed)};
  EXPECT_EQ(to_answer(request).size(), 2u);
}

}  // namespace
}  // namespace kernelpro
