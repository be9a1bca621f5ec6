// SPDX-License-Identifier: Apache-2.0
// Brief candidates versus whole ones: ledger, search and resume behave the same.
#include "run/store/brief.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/json.h"
#include "core/evaluation/label.h"
#include "measure/station/testing/fake_target.h"
#include "run/planted.h"
#include "run/store/ledger.h"
#include "run/store/store.h"
#include "run/store/testing.h"
#include "search/mcts.h"

namespace kernelpro {
namespace {

TEST(Brief, KnobsAreReadAsAJsonParserReadsThem) {
  for (const KnobValues& knobs :
       {KnobValues{}, KnobValues{{"TILE", "32"}}, KnobValues{{"A", "1"}, {"B", ""}, {"C", "x y"}},
        KnobValues{{"Q", "a \"quoted\" \\ value"}, {"R", "\n"}}}) {
    KnobValues read = {{"left", "over"}};
    ASSERT_TRUE(knobs_from_text(dump_json(Json(knobs)), &read)) << dump_json(Json(knobs));
    EXPECT_EQ(read, knobs);
  }
  KnobValues read;
  for (const char* text : {"", "{", "[]", "{\"A\":1}", "{\"A\"}", "{\"A\":\"1\",}",
                           "{\"A\":\"1\"}x", "{\"A\":\"1\"", "null"}) {
    EXPECT_FALSE(knobs_from_text(text, &read)) << text;
  }
  EXPECT_TRUE(knobs_from_text("{ \"A\" : \"1\" }", &read)) << "spaces are JSON too";
  EXPECT_EQ(read, (KnobValues{{"A", "1"}}));
}

Candidate candidate(int i, std::int64_t parent) {
  Candidate c;
  c.source = "int x" + std::to_string(i / 3) + ";\n";
  c.knobs = {{"V", std::to_string(i)}};
  c.origin = {"tuner", parent, "V moves", {"scalar-code", "vectorize"}};
  return c;
}

// Fails, is slower or becomes the best, now and then with energy.
Evaluation evaluation(int i, const std::string& best) {
  Evaluation e;
  e.code = "code " + std::to_string(i);
  if (i % 4 == 1) e.outcome = CompileError{"a long log " + std::to_string(i)};
  if (i % 4 == 2) e.outcome = WrongResult{"small", "y", "off", 0.5, 1e-4};
  if (i % 4 == 1 || i % 4 == 2) return e;
  Correct c;
  const double us = 1000.1 / (1 + i);
  c.timings = {{"a", us, us, us, 9, "calls in turn"}, {"b", 3 * us, us, us, 9, "calls in turn"}};
  if (!best.empty())
    c.versus = Correct::Versus{best, 1 + 0.013 * (i % 5), 0.99 + 0.013 * (i % 5), 1.2};
  if (i % 3 == 0) {
    c.energy.emplace().millijoules = 5.0 / (1 + i);
    c.energy->versus = Energy::Versus{1.1, 1.05, 1.15};
  }
  if (i % 8 == 3) c.labels = {"given-distribution-only", "time-depends-on-values"};
  if (i % 8 == 7) {
    c.labels = {std::string(label_name(Label::kHostForm))};
    e.code = "";
  }
  e.outcome = c;
  return e;
}

Diagnosis diagnosis(int i) {
  Diagnosis d;
  d.bound = Bound::kMemory;
  d.floor_us = 1.5;
  d.fraction_of_ceiling = 0.01 * i;
  d.summary = "slow";
  Finding finding;
  finding.likely_speedup = 1.25;
  finding.upper_speedup = 2.5 + i;
  finding.stop = i % 7 == 0;
  d.findings = {finding, finding};
  d.findings[1].likely_speedup = 1.75;
  if (i % 2 == 0) d.findings[1].prescriptions = {{"vectorize", "do", ""}};
  return d;
}

struct StoredChain {
  TempDir dir;
  std::string run = join(dir.path(), "run");
  Ledger whole;

  // A chain of 24 candidates, and one that waits.
  explicit StoredChain(Objective objective = {}) : whole(objective) {
    RunHeader header;
    header.task = testing::fake_task();
    header.machine.name = "a machine";
    header.settings_json = "{}";
    auto store = std::move(*Store::open(run, Store::Mode::kCreate, &header));
    for (int i = 0; i < 24; ++i) {
      Known known;
      known.candidate = candidate(i, i == 0 ? 0 : 1 + (i * 7) % i);
      known.id = store->add({known.candidate})->front();
      const KnownPtr best = whole.best();
      known.evaluation = evaluation(i, best == nullptr ? "" : content_hash(*best));
      known.diagnosis = diagnosis(i);
      Evidence evidence;
      evidence.texts["loop"] = "vmulps " + std::to_string(i);
      EXPECT_TRUE(store->finish(known.id, known.evaluation, evidence, known.diagnosis, i));
      whole.record(std::move(known));
    }
    EXPECT_TRUE(store->add({candidate(99, 1)}));
  }
};

void expect_same(const Ledger& a, const Ledger& b) {
  EXPECT_EQ(a.evaluations(), b.evaluations());
  EXPECT_EQ(a.failures_by_kind(), b.failures_by_kind());
  EXPECT_EQ(a.since_best(), b.since_best());
  EXPECT_EQ(a.best_speedup(), b.best_speedup());
  const auto history_a = a.history(), history_b = b.history();
  ASSERT_EQ(history_a.size(), history_b.size());
  const SearchMaker make = [] { return make_mcts(); };
  Planted planted_a(make), planted_b(make);
  for (std::size_t i = 0; i < history_a.size(); ++i) {
    const Known& x = *history_a[i];
    const Known& y = *history_b[i];
    EXPECT_EQ(x.id, y.id);
    EXPECT_EQ(content_hash(x), content_hash(y));
    EXPECT_EQ(x.candidate.knobs, y.candidate.knobs);
    EXPECT_EQ(score_us(x.evaluation), score_us(y.evaluation)) << "to the last bit";
    EXPECT_EQ(a.comparable_us(x.id), b.comparable_us(x.id));
    EXPECT_EQ(a.cost(x.id), b.cost(x.id));
    EXPECT_EQ(x.evaluation.code, y.evaluation.code);
    const Correct *mine = x.evaluation.correct(), *theirs = y.evaluation.correct();
    ASSERT_EQ(mine != nullptr, theirs != nullptr);
    if (mine != nullptr) {
      EXPECT_EQ(mine->labels, theirs->labels);
    }
    EXPECT_EQ(x.diagnosis.bound, y.diagnosis.bound);
    planted_a.place(x.candidate.origin.parent, x.id, node_result(a, x.id, Feedback::kDiagnosed));
    planted_b.place(x.candidate.origin.parent, x.id, node_result(b, x.id, Feedback::kDiagnosed));
  }
  const auto turn_a = planted_a.start(), turn_b = planted_b.start();
  ASSERT_TRUE(turn_a && turn_b);
  EXPECT_EQ(turn_a->parent, turn_b->parent);
  const auto nodes_a = planted_a.search().nodes(), nodes_b = planted_b.search().nodes();
  for (std::size_t i = 0; i < nodes_a.size(); ++i) {
    EXPECT_EQ(nodes_a[i].value, nodes_b[i].value);
    EXPECT_EQ(nodes_a[i].reason, nodes_b[i].reason);
  }
}

TEST(Brief, ALedgerInBriefIsTheSameLedger) {
  for (const char* objective : {"time", "time,energy", "weighted:0.5"}) {
    const Objective what = *objective_from_text(objective);
    const StoredChain stored(what);
    const auto store = Store::open(stored.run, Store::Mode::kRead);
    ASSERT_TRUE(store) << store.error().text();
    Ledger ledger(what);
    ASSERT_TRUE((*store)->briefs([&](StoredBrief brief) {
      EXPECT_TRUE(brief.known.brief());
      EXPECT_TRUE(brief.known.candidate.source.empty());
      ledger.record(std::move(brief));
    }));
    expect_same(ledger, stored.whole);
    const History before = ledger.history();
    ledger.complete((*store)->candidate(before[5]->id, false)->known);
    const KnownPtr fifth = ledger.find(before[5]->id);
    EXPECT_EQ(fifth, ledger.history()[5]) << "it takes the place of the brief one";
    EXPECT_TRUE(before[5]->brief()) << "what was handed out stays as it is";
    EXPECT_FALSE(fifth->brief());
    EXPECT_EQ(fifth->comparable, before[5]->comparable);
    EXPECT_EQ(outcome_summary(fifth->evaluation.outcome),
              outcome_summary(stored.whole.find(fifth->id)->evaluation.outcome));
    EXPECT_EQ(fifth->candidate.source, stored.whole.find(fifth->id)->candidate.source);
    const auto finalists = ledger.finalists(), all = stored.whole.finalists();
    ASSERT_EQ(finalists.size(), all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(content_hash(*finalists[i]), content_hash(*all[i]));
    }
    expect_same(ledger, stored.whole);
  }
}

TEST(Brief, SourcesAreComparedWithoutTheirText) {
  const StoredChain stored;
  const auto store = Store::open(stored.run, Store::Mode::kRead);
  std::vector<StoredBrief> all;
  ASSERT_TRUE((*store)->briefs([&](StoredBrief brief) { all.push_back(std::move(brief)); }));
  const SameSource same(stored.whole.history()[4]->candidate);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(same(all[i].known), i / 3 == 1) << i;
    EXPECT_EQ(same(*stored.whole.history()[i]), i / 3 == 1) << i;
  }
  const auto waiting = (*store)->waiting();
  ASSERT_TRUE(waiting) << waiting.error().text();
  ASSERT_EQ(waiting->size(), 1u);
  EXPECT_EQ(waiting->front().known.candidate.content_hash(), candidate(99, 1).content_hash());
  EXPECT_EQ((*store)->candidate(3, true)->evidence.texts.at("loop"), "vmulps 2");
  EXPECT_FALSE((*store)->candidate(300, false));
}

using storing::patch;

constexpr const char* kAsVersion8 =
    "ALTER TABLE outcomes DROP COLUMN labels; PRAGMA user_version = 8";
constexpr const char* kAsVersion5 =
    "DROP TABLE requests; DROP TABLE closed; DROP TABLE outcomes; DROP TABLE held_out;"
    "ALTER TABLE candidates DROP COLUMN repairs; PRAGMA user_version = 5";

TEST(Brief, AStoreWithoutTheColumnsIsReadAndGetsThem) {
  for (const char* earlier : {kAsVersion5, kAsVersion8}) {
    const StoredChain stored;
    patch(stored.run, earlier);
    const auto ledger_of = [&](Store::Mode mode, bool brief) {
      const auto store = Store::open(stored.run, mode);
      EXPECT_TRUE(store) << store.error().text();
      Ledger ledger;
      EXPECT_TRUE((*store)->briefs([&](StoredBrief each) {
        EXPECT_EQ(each.known.brief(), brief);
        ledger.record(std::move(each));
      }));
      expect_same(ledger, stored.whole);
      EXPECT_FALSE((*store)->confirmation()->has_value());
      EXPECT_TRUE((*store)->requests()->empty());
      EXPECT_TRUE((*store)->closed_lines()->empty());
    };
    ledger_of(Store::Mode::kRead, false);
    ledger_of(Store::Mode::kWrite, true);
    ledger_of(Store::Mode::kRead, true);
  }
}

TEST(Brief, AnOlderStoreThatIsDamagedStaysAsItIs) {
  const StoredChain stored;
  patch(stored.run, kAsVersion5);
  patch(stored.run, "UPDATE evaluations SET json = 'torn' WHERE candidate = 7");
  const auto store = Store::open(stored.run, Store::Mode::kWrite);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().kind, ErrorKind::kStore);
  EXPECT_NE(store.error().message.find("candidate 7"), std::string::npos) << store.error().text();
  patch(stored.run, "SELECT 1 / (user_version = 5) FROM pragma_user_version");
  patch(stored.run, "CREATE TABLE outcomes(x)");  // it was not left half-filled
}

TEST(Brief, TheSearchOfAStoredRunIsRebuilt) {
  const StoredChain stored;
  const auto store = Store::open(stored.run, Store::Mode::kRead);
  const auto nodes = stored_nodes(**store);
  ASSERT_TRUE(nodes) << nodes.error().text();
  ASSERT_EQ(nodes->size(), 24u);
  for (std::size_t i = 1; i < nodes->size(); ++i) {
    const bool failed = i % 4 == 1 || i % 4 == 2;
    EXPECT_EQ((*nodes)[i].reason == "failed", failed) << i << ": " << (*nodes)[i].reason;
  }
  EXPECT_EQ((*nodes)[7].reason, "its diagnosis says nothing is left");
}

}  // namespace
}  // namespace kernelpro
