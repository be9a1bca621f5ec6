// SPDX-License-Identifier: Apache-2.0
#include "core/evidence/evidence.h"

#include <gtest/gtest.h>

#include "core/evidence/metrics.h"

namespace kernelpro {
namespace {

TEST(Evidence, TakesTheLevelOfTheRowUnlessToldAnother) {
  Evidence e;
  e.set("launch__grid_size", 8, "launch plan");
  EXPECT_EQ(e.find("launch__grid_size")->level, Level::kStatic);
  e.set("launch__grid_size", 8, Level::kTiming, "a trace");
  EXPECT_EQ(e.find("launch__grid_size")->level, Level::kTiming);
  const auto again = evidence_from_json(evidence_to_json(e));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->find("launch__grid_size")->level, Level::kTiming);
  EXPECT_EQ(again->find("launch__grid_size")->source, "a trace");
}

TEST(Evidence, KeepsThePlacesOfAKernel) {
  Places places;
  places.samples = 1000;
  places.single_producer = 0.75;
  places.stalls = {{Stall::kLongScoreboard, 0.8, 0.6}, {Stall::kSelected, 0.2, 0}};
  const CodePoint load{{"kernel.cu", 12, "x[idx[i]]"}, 0x90, "LDG.E R4, [R2.64]"};
  const CodePoint use{{"", 0, ""}, 0xa0, "FADD R5, R4, R5"};
  places.places = {{use, Stall::kLongScoreboard, 0.8, 0.6, {{load, 0.9}}}};
  Evidence e;
  e.kernels.push_back({"k", {}});
  e.kernels[0].facts.places = places;
  const auto again = evidence_from_json(evidence_to_json(e));
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->places);
  const auto& found = again->kernels.at(0).facts.places;
  ASSERT_TRUE(found);
  EXPECT_EQ(found->basis, Places::Basis::kSampled);
  EXPECT_EQ(found->samples, 1000);
  EXPECT_EQ(found->single_producer, 0.75);
  ASSERT_EQ(found->stalls.size(), 2u);
  EXPECT_EQ(found->stalls[0].exposed, 0.6);
  ASSERT_EQ(found->places.size(), 1u);
  const Place& place = found->places[0];
  EXPECT_EQ(place.at.offset, 0xa0);
  EXPECT_EQ(place.at.line.file, "");
  EXPECT_EQ(place.stall, Stall::kLongScoreboard);
  EXPECT_EQ(place.share, 0.8);
  ASSERT_EQ(place.producers.size(), 1u);
  EXPECT_EQ(place.producers[0].part, 0.9);
  EXPECT_EQ(place.producers[0].at.line.file, "kernel.cu");
  EXPECT_EQ(place.producers[0].at.line.line, 12);
  EXPECT_EQ(place.producers[0].at.line.text, "x[idx[i]]");
  EXPECT_EQ(place.producers[0].at.instruction, "LDG.E R4, [R2.64]");
}

TEST(Evidence, DamagedPlacesAreMendedOrLeftOut) {
  const auto read = [](const std::string& places) {
    const auto e =
        evidence_from_json(R"({"items":{},"texts":{},"missing":[],"places":)" + places + "}");
    EXPECT_TRUE(e);
    return e ? e->places : std::nullopt;
  };
  EXPECT_FALSE(read("3"));
  EXPECT_FALSE(read(R"({"basis":"dreamt"})"));
  const auto places = read(
      R"({"basis":"estimated","samples":-5,"stalls":[{"stall":"wait","share":7},{"stall":"new"}],)"
      R"("places":[{"stall":"wait","share":0.5,"exposed":3,"producers":[4]},{"stall":"new"},3]})");
  ASSERT_TRUE(places);
  EXPECT_EQ(places->basis, Places::Basis::kEstimated);
  EXPECT_EQ(places->samples, 0);
  ASSERT_EQ(places->stalls.size(), 1u);
  EXPECT_EQ(places->stalls[0].share, 1);
  ASSERT_EQ(places->places.size(), 1u);
  EXPECT_EQ(places->places[0].exposed, 0.5);
  EXPECT_EQ(places->places[0].producers.size(), 0u);
}

TEST(Missing, AFamilyExplainsEachOfItsMetricsAndNoOther) {
  for (int i = 0; i < kFamilies; ++i) {
    Evidence e;
    e.note_missing({static_cast<Family>(i), "so it is", "change it"});
    for (const Metric& metric : metrics()) {
      const Missing* why = why_missing(e, metric.name);
      EXPECT_EQ(why != nullptr, metric.family == static_cast<Family>(i)) << metric.name;
    }
    EXPECT_EQ(why_missing(e, "no.such"), nullptr);
  }
}

TEST(Missing, AMetricsOwnReasonComesFirstAndAPartExplainsNone) {
  Evidence e;
  e.note_missing({Family::kCounters, "the first of each kernel were profiled", "", {}, "of 9"});
  EXPECT_EQ(why_missing(e, "smsp__inst_executed.sum"), nullptr);
  e.note_missing({Family::kCounters, "no permission", ""});
  e.note_missing({Family::kCounters, "no such counter", "", {"smsp__inst_executed.sum"}});
  EXPECT_EQ(why_missing(e, "smsp__inst_executed.sum")->reason, "no such counter");
  EXPECT_EQ(why_missing(e, "dram__bytes_read.sum")->reason, "no permission");
}

TEST(Missing, SurvivesItsJson) {
  Evidence e;
  e.kernels.push_back({"k", {}});
  e.note_missing({Family::kTrace, "5 were lost", "trace less", {}, "records"});
  e.kernels[0].facts.note_missing({Family::kCounters, "none", "", {"dram__bytes_read.sum"}});
  const auto again = evidence_from_json(evidence_to_json(e));
  ASSERT_TRUE(again);
  ASSERT_EQ(again->missing().size(), 1u);
  EXPECT_EQ(again->missing()[0].next, "trace less");
  EXPECT_EQ(missing_names(again->missing()[0]), std::vector<std::string>{"trace records"});
  ASSERT_EQ(again->kernels.at(0).facts.missing().size(), 1u);
  EXPECT_EQ(missing_names(again->kernels[0].facts.missing()[0]),
            std::vector<std::string>{"dram__bytes_read.sum"});
}

Evidence old_evidence(const std::string& what) {
  const auto evidence = evidence_from_json(
      R"({"items": {"timing.median": {"value": 7, "level": "timing", "source": "timing"}},)"
      R"( "texts": {}, "missing": [{"what": ")" +
      what + R"(", "reason": "so it is", "next": "change it"}]})");
  EXPECT_TRUE(evidence);
  return evidence.value_or(Evidence());
}

// As collectors wrote it when `what` was words.
TEST(Missing, OldStoresAreRead) {
  struct Old {
    const char* what;
    const char* metric;  // one that it explains
    const char* name;    // as reports call it now
  };
  const Old olds[] = {
      {"copy bandwidth", "ceiling.copy_bandwidth", "ceiling.copy_bandwidth"},
      {"fp32 multiply-add rate", "ceiling.fma_rate", "ceiling.fma_rate"},
      {"timing", "timing.median", "timing"},
      {"timing.median", "timing.median", "timing.median"},
      {"instruction mix", "cpu.asm.hot.packed_fp", "instruction mix"},
      {"SASS instruction mix", "sass.hot.loops", "SASS instruction mix"},
      {"registers and spills", "launch__registers_per_thread", "registers and spills"},
      {"hardware counters", "smsp__inst_executed.sum", "hardware counters"},
      {"a report of ncu", "smsp__inst_executed.sum", "hardware counters"},
      {"trace", "trace.span", "trace"},
      {"smsp__inst_executed.sum", "smsp__inst_executed.sum", "smsp__inst_executed.sum"},
      {"trace.syncs, trace.allocations", "trace.allocations", "trace.syncs"},
  };
  for (const Old& old : olds) {
    const Evidence e = old_evidence(old.what);
    EXPECT_EQ(e.get("timing.median"), 7);
    ASSERT_EQ(e.missing().size(), 1u) << old.what;
    EXPECT_EQ(missing_names(e.missing()[0]).at(0), old.name);
    const Missing* why = why_missing(e, old.metric);
    ASSERT_NE(why, nullptr) << old.what;
    EXPECT_EQ(why->reason, "so it is");
    EXPECT_EQ(why->next, "change it");
  }
}

TEST(Missing, OldPartsAreParts) {
  const std::pair<const char*, const char*> parts[] = {
      {"hardware counters of softmax", "hardware counters of softmax"},
      {"counters of 496 launches", "hardware counters of 496 launches"},
      {"trace records", "trace records"},
      {"the trace's end", "trace of its end"},
  };
  for (const auto& [what, name] : parts) {
    const Evidence e = old_evidence(what);
    ASSERT_EQ(e.missing().size(), 1u) << what;
    EXPECT_EQ(missing_names(e.missing()[0]).at(0), name);
    for (const Metric& metric : metrics()) EXPECT_EQ(why_missing(e, metric.name), nullptr);
  }
}

TEST(Missing, AnOldModuleLacksAllOfItsKernels) {
  const Evidence e = old_evidence("kernels");
  for (const char* name : {"plan.kernels", "launch__grid_size", "ptxas.spill_load_bytes",
                           "sass.instructions", "smsp__inst_executed.sum"}) {
    EXPECT_NE(why_missing(e, name), nullptr) << name;
  }
  EXPECT_EQ(why_missing(e, "timing.median"), nullptr);
  EXPECT_TRUE(old_evidence("words of nobody").missing().empty());
}

TEST(Missing, DamagedEntriesAreSkipped) {
  const auto e =
      evidence_from_json(R"({"missing": [3, {}, {"family": "no-such"}, {"family": 7},)"
                         R"( {"family": "sass", "metrics": [1, "sass.loops"], "part": {}}]})");
  ASSERT_TRUE(e);
  ASSERT_EQ(e->missing().size(), 1u);
  EXPECT_EQ(e->missing()[0].metrics, std::vector<std::string>{"sass.loops"});
}

TEST(Evidence, LinesAndSitesRoundTrip) {
  Evidence e;
  e.lines["sass.hot.ffma"] = {{{"k.cu", 3, "x = y * z;"}, {"k.cu", 4, ""}}, {}};
  e.lines["sass.hot.mufu"] = {{{"k.cu", 3, "x = y * z;"}}, {{"k.cu", 9, "f(x);"}}};
  e.sites = {{SiteKind::kLaunch, {"k.cu", 40, "k<<<1, 2>>>();"}, 41, ""},
             {SiteKind::kAllocate, {"k.cu", 39, ""}, 39, "cudaMalloc"}};
  const auto again = evidence_from_json(evidence_to_json(e));
  ASSERT_TRUE(again);
  const CodeLines& lines = again->lines.at("sass.hot.mufu");
  ASSERT_EQ(lines.lines.size(), 1u);
  EXPECT_EQ(lines.lines[0].file, "k.cu");
  EXPECT_EQ(lines.lines[0].text, "x = y * z;");
  EXPECT_EQ(lines.callers.at(0).line, 9);
  EXPECT_EQ(lines.callers[0].text, "f(x);");
  EXPECT_EQ(again->lines.at("sass.hot.ffma").lines.at(0).text, "x = y * z;");
  EXPECT_EQ(again->lines.at("sass.hot.ffma").lines.at(1).text, "");
  const std::string json = evidence_to_json(e);
  EXPECT_EQ(json.find("x = y * z;"), json.rfind("x = y * z;")) << "once is enough";
  ASSERT_EQ(again->sites.size(), 2u);
  EXPECT_EQ(again->sites[0].kind, SiteKind::kLaunch);
  EXPECT_EQ(again->sites[0].last, 41);
  EXPECT_EQ(again->sites[0].line.text, "k<<<1, 2>>>();");
  EXPECT_EQ(again->sites[1].kind, SiteKind::kAllocate);
  EXPECT_EQ(again->sites[1].name, "cudaMalloc");
}

TEST(Evidence, LinesOfEarlierVersionsAreTexts) {
  const auto e = evidence_from_json(
      R"({"items":{},"texts":{"line of sass.hot.mufu":"k.cu:41, k.cu:44, x, y:0","arch":"sm_90a"},)"
      R"("missing":[],"lines":{"a":3,"b":{"at":[["k.cu"],["k.cu","2"],[4,5],["k.cu",-1]]}},)"
      R"("sites":[3,{"kind":"new","file":"k.cu","line":1},{"kind":"launch","line":1}]})");
  ASSERT_TRUE(e);
  EXPECT_EQ(e->texts.size(), 1u);
  ASSERT_EQ(e->lines.size(), 1u);
  const CodeLines& lines = e->lines.at("sass.hot.mufu");
  ASSERT_EQ(lines.lines.size(), 2u);
  EXPECT_EQ(lines.lines[1].line, 44);
  EXPECT_TRUE(e->sites.empty());
}

}  // namespace
}  // namespace kernelpro
