// SPDX-License-Identifier: Apache-2.0
// Places over recorded disassembly, with samples made up for instructions whose cause is known.
#include "profile/places/places.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "profile/places/blame.h"
#include "profile/places/testing/synthetic.h"
#include "profile/sass/device_code.h"
#include "profile/sass/sass.h"

namespace kernelpro {
namespace {

constexpr const char* kCoded[] = {"patterns.sm_80.txt", "patterns.sm_90a.txt",
                                  "patterns.sm_100a.txt", "patterns.sm_120a.txt"};
constexpr const char* kAll[] = {
    "patterns.sm_80.txt",     "patterns.sm_90a.txt", "patterns.sm_100a.txt",
    "patterns.sm_120a.txt",   "sm_80.nvdisasm.txt",  "sm_90a.nvdisasm.txt",
    "sm_90a.cuobjdump.txt",   "sm_120.nvdisasm.txt", "sm_100a.nvdisasm.txt",
    "blackwell.nvdisasm.txt", "hopper.nvdisasm.txt",
};

std::size_t slot(int index) { return static_cast<std::size_t>(index); }

int find_root(const SassFunction& f, std::string_view root, int from = 0) {
  for (int k = from; k < static_cast<int>(f.code.size()); ++k) {
    if (f.code[slot(k)].root == root) return k;
  }
  ADD_FAILURE() << f.name << " has no " << root;
  return 0;
}

// The first instruction after `producer` that waits for the scoreboard that it sets.
int waiter_of(const SassFunction& f, int producer) {
  const int board = f.code[slot(producer)].control.written_by;
  for (int k = producer + 1; k < static_cast<int>(f.code.size()); ++k) {
    if (board < 6 && (f.code[slot(k)].control.waits >> board & 1) != 0) return k;
  }
  ADD_FAILURE() << "nothing waits for it";
  return producer;
}

Places of_one(const SassFunction& f, int instruction, Stall stall) {
  KernelSamples samples;
  add_samples(f, instruction, stall, 100, 80, &samples);
  return sampled_places(f, samples, {});
}

LineText fixture_lines() {
  return lines_in(std::string(KERNELPRO_SOURCE_DIR) + "/src/profile/fixtures");
}

void expect_sound(const Places& places, const std::string& name) {
  double all = 0;
  for (const StallShare& each : places.stalls) {
    EXPECT_LE(each.exposed, each.share + 1e-9) << name;
    all += each.share;
  }
  EXPECT_NEAR(all, 1, 1e-9) << name;
  double placed = 0;
  EXPECT_LE(places.places.size(), static_cast<std::size_t>(kMostPlaces));
  for (const Place& place : places.places) {
    placed += place.share;
    EXPECT_GE(place.share, place.exposed - 1e-9) << name;
    double blamed = 0;
    for (const Producer& producer : place.producers) blamed += producer.part;
    EXPECT_LE(blamed, 1 + 1e-9) << name;
    EXPECT_FALSE(place.at.instruction.empty()) << name;
  }
  EXPECT_LE(placed, 1 + 1e-9) << name;
  double issued = 0;
  for (const WorkShare& each : places.issued) issued += each.share;
  EXPECT_NEAR(issued, places.issued.empty() ? 0 : 1, 1e-9) << name;
  EXPECT_GE(places.single_producer, 0) << name;
  EXPECT_LE(places.single_producer, 1 + 1e-9) << name;
}

TEST(Places, SharesAddUpWhateverIsSampled) {
  for (const char* file : kAll) {
    for (const auto& [name, kernel] : recorded_kernels(KERNELPRO_SOURCE_DIR, file)) {
      expect_sound(sampled_places(kernel, samples_everywhere(kernel), {}), name);
    }
  }
}

TEST(Places, AreEstimatedForEveryKernel) {
  int kernels = 0;
  for (const char* file : kAll) {
    for (const auto& [name, kernel] : recorded_kernels(KERNELPRO_SOURCE_DIR, file)) {
      const Places places = estimated_places(kernel, {}, {});
      EXPECT_EQ(places.basis, Places::Basis::kEstimated);
      EXPECT_FALSE(places.places.empty()) << file << " " << name;
      expect_sound(places, name);
      ++kernels;
    }
  }
  EXPECT_GT(kernels, 100);
}

TEST(Places, SayWhatAKernelIssues) {
  const auto kernels = recorded_kernels(KERNELPRO_SOURCE_DIR, "patterns.sm_90a.txt");
  const SassFunction& f = kernels.at("pointer_chase");
  KernelSamples samples;
  const int load = find_root(f, "LDG");
  samples.pcs = {{static_cast<int>(f.code[static_cast<std::size_t>(load)].address),
                  {{Stall::kSelected, 30, 0}, {Stall::kLongScoreboard, 900, 900}}},
                 {static_cast<int>(f.code[0].address), {{Stall::kSelected, 10, 0}}}};
  const Places places = sampled_places(f, samples, {});
  ASSERT_FALSE(places.issued.empty());
  EXPECT_EQ(places.issued[0].kind, WorkKind::kGlobal);
  EXPECT_DOUBLE_EQ(places.issued[0].share, 0.75);
}

// Samples of other code are no evidence of this kernel.
TEST(Places, SamplesThatDoNotFitTheCodeAreNotUsed) {
  const auto recorded = recorded_kernels(KERNELPRO_SOURCE_DIR, "patterns.sm_90a.txt");
  SassFunction f = recorded.at("pointer_chase");
  for (std::size_t k = 0; k < f.code.size(); ++k) {
    f.code[k].control.known = true;
    f.code[k].control.waits = k % 4 == 0 ? 1 : 0;
  }
  for (const int shift : {0, 1}) {
    KernelSamples samples;
    samples.function = f.name;
    for (int k = 0; k + shift < static_cast<int>(f.code.size()); k += 4) {
      add_samples(f, k + shift, Stall::kLongScoreboard, 90, 90, &samples);
    }
    EXPECT_EQ(places_fit(f, samples), shift == 0 ? 1 : 0);
    SampleAnswers answers;
    answers.source = "cupti";
    answers.kernels = {samples};
    std::map<std::string, KernelEvidence> kernels;
    kernels[f.name].name = "pointer_chase";
    std::vector<Missing> missing;
    add_places({{f.name, f}}, answers, fixture_lines(), &kernels, &missing);
    const Evidence& facts = kernels[f.name].facts;
    ASSERT_TRUE(facts.places.has_value());
    EXPECT_EQ(facts.places->basis == Places::Basis::kSampled, shift == 0);
    EXPECT_EQ(missing.size(), shift == 0 ? 0u : 1u);
    if (!missing.empty()) {
      EXPECT_TRUE(contains(missing[0].reason, "pointer_chase")) << missing[0].reason;
    }
  }
}

// Samples of these waits lie behind the instruction that waits, as ncu's do, and an H200's.
TEST(Places, SomeWaitsAreCountedAtTheNextInstruction) {
  SassFunction f;
  f.name = "ring";
  const auto append = [&](const std::string& root, Op op) {
    SassInstruction i;
    i.address = 16 * f.code.size();
    i.root = root;
    i.op = op;
    i.control.known = true;
    f.code.push_back(i);
    return static_cast<int>(f.code.size()) - 1;
  };
  append("LDGSTS", Op::kAsyncCopy);
  const int commit = append("LDGDEPBAR", Op::kOther), wait = append("DEPBAR", Op::kOther);
  const int barrier = append("BAR", Op::kBarrier), read = append("LDS", Op::kSharedLoad);
  const int fence = append("MEMBAR", Op::kFence);
  append("ERRBAR", Op::kOther);
  const int after = append("CCTL", Op::kOther);
  KernelSamples samples;
  samples.function = f.name;
  add_samples(f, barrier, Stall::kLongScoreboard, 900, 900, &samples);
  EXPECT_EQ(places_fit(f, samples), 1);
  add_samples(f, read, Stall::kBarrier, 500, 500, &samples);
  add_samples(f, after, Stall::kMembar, 300, 300, &samples);
  const Places places = sampled_places(f, samples, {});
  ASSERT_EQ(places.places.size(), 3u);
  EXPECT_EQ(places.places[0].at.offset, 16 * wait);
  EXPECT_EQ(places.places[1].at.offset, 16 * barrier);
  EXPECT_EQ(places.places[2].at.offset, 16 * fence);
  add_samples(f, commit, Stall::kLongScoreboard, 900, 900, &samples);
  EXPECT_EQ(places_fit(f, samples), 0.5);
}

TEST(Places, RegionsSurviveTheJourneyToTheStore) {
  int with_regions = 0;
  for (const auto& [name, f] : recorded_kernels(KERNELPRO_SOURCE_DIR, "patterns.sm_90a.txt")) {
    Evidence evidence;
    evidence.places = sampled_places(f, samples_everywhere(f), fixture_lines());
    const auto again = evidence_from_json(evidence_to_json(evidence));
    ASSERT_TRUE(again && again->places) << name;
    const std::vector<IssueRegion>& before = evidence.places->regions;
    const std::vector<IssueRegion>& after = again->places->regions;
    ASSERT_EQ(after.size(), before.size());
    for (std::size_t k = 0; k < after.size(); ++k) {
      EXPECT_TRUE(after[k].line.same_place(before[k].line) && after[k].kind == before[k].kind);
      EXPECT_EQ(std::pair(after[k].first, after[k].last),
                std::pair(before[k].first, before[k].last));
      EXPECT_NEAR(after[k].share, before[k].share, 1e-6);
    }
    with_regions += before.empty() ? 0 : 1;
  }
  EXPECT_GT(with_regions, 0);
}

TEST(Places, AUseIsBlamedOnTheLoadThatItWaitsFor) {
  for (const char* file : kCoded) {
    const auto kernels = recorded_kernels(KERNELPRO_SOURCE_DIR, file);
    for (const char* name : {"global_histogram", "far_lanes", "pointer_chase", "warp_sum"}) {
      const SassFunction& f = kernels.at(name);
      const int load = find_root(f, "LDG");
      const Places places = of_one(f, waiter_of(f, load), Stall::kLongScoreboard);
      ASSERT_EQ(places.places.size(), 1u);
      const Place& place = places.places[0];
      EXPECT_DOUBLE_EQ(place.exposed, 0.8);
      ASSERT_EQ(place.producers.size(), 1u) << file << " " << name;
      EXPECT_TRUE(contains(place.producers[0].at.instruction, "LDG")) << file << " " << name;
      EXPECT_EQ(place.producers[0].at.offset, static_cast<int>(f.code[slot(load)].address));
      EXPECT_DOUBLE_EQ(place.producers[0].part, 1);
      EXPECT_EQ(places.single_producer, 1);
    }
  }
}

TEST(Places, ShowTheLineAndItsText) {
  const auto kernels = recorded_kernels(KERNELPRO_SOURCE_DIR, "patterns.sm_90a.txt");
  const SassFunction& f = kernels.at("pointer_chase");
  KernelSamples samples;
  add_samples(f, waiter_of(f, find_root(f, "LDG")), Stall::kLongScoreboard, 9, 9, &samples);
  const Places places = sampled_places(f, samples, fixture_lines());
  const SourceLine& line = places.places.at(0).producers.at(0).at.line;
  EXPECT_EQ(line.file, "patterns.cu");
  EXPECT_TRUE(contains(line.text, "at = x[at];")) << line.text;
}

TEST(Places, TheLinesOfMetricsGetTheirTexts) {
  auto functions = recorded_kernels(KERNELPRO_SOURCE_DIR, "patterns.sm_90a.txt");
  std::map<std::string, KernelEvidence> kernels;
  Evidence& facts = kernels["pointer_chase"].facts;
  add_sass(hot_mix(functions.at("pointer_chase")), "nvdisasm", &facts);
  std::vector<Missing> missing;
  add_places(functions, {}, fixture_lines(), &kernels, &missing);
  int lines = 0;
  for (const auto& [metric, each] : facts.lines) {
    for (const SourceLine& line : each.lines) {
      EXPECT_FALSE(line.text.empty()) << metric << " " << line.line;
      lines += contains(line.text, "at = x[at];");
    }
  }
  EXPECT_GT(lines, 0);
}

TEST(Places, AMultiplicationIsBlamedOnTheOneBeforeIt) {
  for (const char* file : kCoded) {
    const auto kernels = recorded_kernels(KERNELPRO_SOURCE_DIR, file);
    const SassFunction& f = kernels.at("one_chain");
    const int last = find_root(f, "FFMA", find_root(f, "FFMA") + 1);
    const Places places = of_one(f, last, Stall::kWait);
    ASSERT_EQ(places.places.at(0).producers.size(), 1u) << file;
    EXPECT_TRUE(contains(places.places[0].producers[0].at.instruction, "FFMA")) << file;
  }
}

TEST(Places, AnAsynchronousCopyIsBlamedForTheWaitForItsGroup) {
  for (const char* file : kCoded) {
    const auto kernels = recorded_kernels(KERNELPRO_SOURCE_DIR, file);
    const SassFunction& f = kernels.at("stages_in_flight");
    const Places places = of_one(f, find_root(f, "DEPBAR"), Stall::kLongScoreboard);
    ASSERT_FALSE(places.places.at(0).producers.empty()) << file;
    for (const Producer& producer : places.places[0].producers) {
      EXPECT_TRUE(contains(producer.at.instruction, "LDGSTS")) << producer.at.instruction;
    }
  }
}

TEST(Places, ABarrierIsBlamedOnTheCostliestWaitBeforeIt) {
  for (const char* file : kCoded) {
    const auto kernels = recorded_kernels(KERNELPRO_SOURCE_DIR, file);
    const SassFunction& f = kernels.at("conflicting_tile");
    const int store = waiter_of(f, find_root(f, "LDG"));
    const int barrier = find_root(f, "BAR", store);
    KernelSamples samples;
    add_samples(f, store, Stall::kLongScoreboard, 50, 50, &samples);
    add_samples(f, barrier, Stall::kBarrier, 100, 100, &samples);
    const Places places = sampled_places(f, samples, {});
    const Place& first = places.places.at(0);
    EXPECT_EQ(first.stall, Stall::kBarrier);
    ASSERT_EQ(first.producers.size(), 1u) << file;
    EXPECT_EQ(first.producers[0].at.offset, static_cast<int>(f.code[slot(store)].address));
  }
}

TEST(Places, ASpecialFunctionIsBlamedForTheWaitOnItsResult) {
  for (const char* file : kCoded) {
    const auto kernels = recorded_kernels(KERNELPRO_SOURCE_DIR, file);
    const SassFunction& f = kernels.at("precise_division");
    const int special = find_root(f, "MUFU");
    const Places places = of_one(f, waiter_of(f, special), Stall::kShortScoreboard);
    ASSERT_EQ(places.places.at(0).producers.size(), 1u) << file;
    EXPECT_TRUE(contains(places.places[0].producers[0].at.instruction, "MUFU")) << file;
  }
}

// Without control bits, as nvdisasm prints it by default: registers alone say what is waited for.
TEST(Places, ASpilledValueIsBlamedForTheWaitOnIt) {
  const auto kernels = recorded_kernels(KERNELPRO_SOURCE_DIR, "sm_90a.nvdisasm.txt");
  const SassFunction& f = kernels.at("spill");
  const int load = find_root(f, "LDL");
  const std::string& operands = f.code[slot(load)].operands;
  const std::string target = operands.substr(0, operands.find(','));
  int use = load + 1;
  const auto reads = [&](int k) {
    const std::string& all = f.code[slot(k)].operands;
    return contains(all.substr(all.find(',') + 1) + ",", target + ",") ||
           contains(all.substr(all.find(',') + 1) + " ", target + " ");
  };
  while (use + 1 < static_cast<int>(f.code.size()) && !reads(use)) ++use;
  ASSERT_TRUE(reads(use)) << target;
  const Places places = of_one(f, use, Stall::kLongScoreboard);
  ASSERT_FALSE(places.places.at(0).producers.empty());
  EXPECT_TRUE(contains(places.places[0].producers[0].at.instruction, "LDL"))
      << places.places[0].producers[0].at.instruction;
}

// Written by hand after sm_90a's: a tile is fetched, and its barrier waited for.
TEST(Places, ABulkCopyIsBlamedForTheWaitOnItsBarrier) {
  const std::vector<SassFunction> functions = parse_sass(
      "\t.target\tsm_90a\n"
      "\t.section\t.text.tiles,\"ax\",@progbits\n"
      "\t.global\ttiles\n"
      "\t.type\ttiles,@function\n"
      "\t.other\ttiles,@\"STO_CUDA_ENTRY STV_DEFAULT\"\n"
      "tiles:\n.text.tiles:\n"
      "        /*0000*/                   UMOV UR4, 0x400 ;\n"
      "        /*0010*/                   SYNCS.ARRIVE.TRANS64 RZ, [UR4], R2 ;\n"
      "        /*0020*/                   UTMALDG.2D [UR8], [UR6] ;\n"
      ".L_x_1:\n"
      "        /*0030*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R3 ;\n"
      "        /*0040*/              @!P0 BRA `(.L_x_1) ;\n"
      "        /*0050*/                   LDS R4, [R5] ;\n"
      "        /*0060*/                   EXIT ;\n");
  ASSERT_EQ(functions.size(), 1u);
  const SassFunction& f = functions[0];
  ASSERT_EQ(f.code.size(), 7u);
  const Places places = of_one(f, 4, Stall::kLongScoreboard);
  ASSERT_EQ(places.places.size(), 1u);
  ASSERT_FALSE(places.places[0].producers.empty());
  EXPECT_TRUE(contains(places.places[0].producers[0].at.instruction, "UTMALDG"))
      << places.places[0].producers[0].at.instruction;
}

TEST(Places, AWarpgroupsWaitIsBlamedOnItsProducts) {
  const auto kernels = recorded_kernels(KERNELPRO_SOURCE_DIR, "hopper.nvdisasm.txt");
  const SassFunction& f = kernels.at("wgmma_wait");
  int wait = find_root(f, "WARPGROUP");
  while (!f.code[slot(wait)].has("DEPBAR")) wait = find_root(f, "WARPGROUP", wait + 1);
  const Places places = of_one(f, wait, Stall::kGmma);
  ASSERT_FALSE(places.places.at(0).producers.empty());
  EXPECT_TRUE(contains(places.places[0].producers[0].at.instruction, "HGMMA"));
}

// The hardware has other names for waits for products (blame.h).
TEST(Places, WaitsForProductsAreCalledThat) {
  const auto kernels = recorded_kernels(KERNELPRO_SOURCE_DIR, "hopper.nvdisasm.txt");
  const SassFunction& f = kernels.at("wgmma_wait");
  int wait = find_root(f, "WARPGROUP");
  while (!f.code[slot(wait)].has("DEPBAR")) wait = find_root(f, "WARPGROUP", wait + 1);
  const int product = find_root(f, "HGMMA");
  KernelSamples samples;
  add_samples(f, wait, Stall::kBarrier, 100, 90, &samples);
  add_samples(f, product, Stall::kWarpgroupArrive, 60, 50, &samples);
  const Places places = sampled_places(f, samples, {});
  ASSERT_EQ(places.stalls.size(), 1u);
  EXPECT_EQ(places.stalls[0].stall, Stall::kGmma);
  EXPECT_DOUBLE_EQ(places.stalls[0].share, 1);
  ASSERT_EQ(places.places.size(), 2u);
  EXPECT_TRUE(contains(places.places[0].at.instruction, "DEPBAR"));
  ASSERT_FALSE(places.places[0].producers.empty());
  EXPECT_TRUE(contains(places.places[0].producers[0].at.instruction, "HGMMA"));
  // A barrier just before it has its own samples.
  SassFunction near = f;
  near.code[slot(wait) - 1].root = "BAR";
  EXPECT_EQ(waiter_of(near, wait, Stall::kBarrier), wait);
  EXPECT_EQ(waiter_of(near, wait + 1, Stall::kBarrier), wait - 1);
}

// A line of strings or operands stands for what its asm statement executes.
TEST(Places, ALineOfInlinePtxIsShownByItsInstruction) {
  const std::vector<std::string> source = {
      "__device__ void wait(u32 b, u32 parity) {",
      "  asm volatile(",
      "      \"{\\n\\t.reg .pred p;\\n\\t\"",
      "      \"WAIT_%=:\\n\\t\"",
      "      \"mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\\n\\t\"",
      "      \"@p bra DONE_%=;\\n\\t\"",
      "      \"DONE_%=:\\n\\t}\" ::\"r\"(b), \"r\"(parity) : \"memory\");",
      "}",
      "  asm volatile(\"setp.ne.b32 p, %0, 0; cp.async.bulk.commit_group;\" ::",
      "      \"r\"(b));",
      "  const char* name =",
      "      \"no.code\";",
  };
  const LineText text = [&](const std::string&, int line) {
    return line >= 1 && line <= static_cast<int>(source.size()) ? source[slot(line - 1)]
                                                                : std::string();
  };
  const auto recorded = recorded_kernels(KERNELPRO_SOURCE_DIR, "patterns.sm_90a.txt");
  SassFunction f = recorded.at("pointer_chase");
  const int load = find_root(f, "LDG");
  const auto shown = [&](int line) {
    for (SassInstruction& i : f.code) i.line = line;
    KernelSamples samples;
    add_samples(f, load, Stall::kLongScoreboard, 100, 80, &samples);
    return sampled_places(f, samples, text).places.at(0).at.line.text;
  };
  for (const int line : {3, 4, 5, 6, 7}) {
    EXPECT_EQ(shown(line), "asm mbarrier.try_wait.parity.shared::cta.b64") << line;
  }
  EXPECT_EQ(shown(10), "asm cp.async.bulk.commit_group");
  EXPECT_EQ(shown(12), "\"no.code\";");
  EXPECT_EQ(shown(8), "}");
}

// Written by hand after sm_90a's. Bulk copies wait for room that copies take: the thread's number
// is read again in many loops, and fills no queue.
TEST(Places, AThrottledCopyIsBlamedOnCopies) {
  const std::vector<SassFunction> functions = parse_sass(
      "\t.target\tsm_90a\n"
      "\t.section\t.text.ring,\"ax\",@progbits\n"
      "\t.global\tring\n"
      "\t.type\tring,@function\n"
      "\t.other\tring,@\"STO_CUDA_ENTRY STV_DEFAULT\"\n"
      "ring:\n.text.ring:\n"
      ".L_x_1:\n"
      "        /*0000*/                   S2R R1, SR_TID.X ;\n"
      "        /*0010*/                   UBLKCP.S.G [UR8], [UR6], UR4 ;\n"
      "        /*0020*/                   ISETP.LT.AND P0, PT, R1, R3, PT ;\n"
      "        /*0030*/               @P0 BRA `(.L_x_1) ;\n"
      "        /*0040*/                   EXIT ;\n");
  ASSERT_EQ(functions.size(), 1u);
  const Places places = of_one(functions[0], 1, Stall::kMioThrottle);
  ASSERT_EQ(places.places.size(), 1u);
  ASSERT_EQ(places.places[0].producers.size(), 1u);
  EXPECT_TRUE(contains(places.places[0].producers[0].at.instruction, "UBLKCP"));
}

// Written by hand after sm_90a's. A bulk copy that leaves shared memory fills no buffer.
TEST(Places, ACopyOutIsNotBlamedForAWaitOnTiles) {
  const std::vector<SassFunction> functions = parse_sass(
      "\t.target\tsm_90a\n"
      "\t.section\t.text.tiles,\"ax\",@progbits\n"
      "\t.global\ttiles\n"
      "\t.type\ttiles,@function\n"
      "\t.other\ttiles,@\"STO_CUDA_ENTRY STV_DEFAULT\"\n"
      "tiles:\n.text.tiles:\n"
      "        /*0000*/                   UBLKCP.S.G [UR8], [UR6], UR4 ;\n"
      ".L_x_1:\n"
      "        /*0010*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R3 ;\n"
      "        /*0020*/              @!P0 BRA `(.L_x_1) ;\n"
      "        /*0030*/                   LDS R4, [R5] ;\n"
      "        /*0040*/                   UBLKCP.G.S [UR8], [UR6], UR4 ;\n"
      "        /*0050*/                   UTMASTG.2D [UR8], [UR6] ;\n"
      "        /*0060*/                   EXIT ;\n");
  ASSERT_EQ(functions.size(), 1u);
  const Places places = of_one(functions[0], 2, Stall::kLongScoreboard);
  ASSERT_EQ(places.places.size(), 1u);
  ASSERT_EQ(places.places[0].producers.size(), 1u);
  EXPECT_TRUE(contains(places.places[0].producers[0].at.instruction, "UBLKCP.S.G"));
}

TEST(Places, AThrottledLoadIsBlamedOnTheLoadsOfItsLoop) {
  const auto kernels = recorded_kernels(KERNELPRO_SOURCE_DIR, "patterns.sm_90a.txt");
  const SassFunction& f = kernels.at("loads_in_flight");
  const Places places = of_one(f, find_root(f, "LDG"), Stall::kLgThrottle);
  ASSERT_FALSE(places.places.at(0).producers.empty());
  for (const Producer& producer : places.places[0].producers) {
    EXPECT_TRUE(contains(producer.at.instruction, "LDG"));
  }
}

TEST(Places, AHelpersTimeStandsAtTheLineThatCallsIt) {
  const auto kernels = recorded_kernels(KERNELPRO_SOURCE_DIR, "patterns.sm_90a.txt");
  const SassFunction& f = kernels.at("long_division");
  const int last = static_cast<int>(f.code.size()) - 2;
  KernelSamples samples;
  add_samples(f, last, Stall::kWait, 9, 9, &samples);
  const Places places = sampled_places(f, samples, fixture_lines());
  EXPECT_TRUE(contains(places.places.at(0).at.line.text, "x[i] / d"))
      << places.places[0].at.line.text;
}

TEST(Places, CountersSayHowMuchEachReasonTakes) {
  const auto kernels = recorded_kernels(KERNELPRO_SOURCE_DIR, "patterns.sm_90a.txt");
  Evidence facts;
  facts.set("smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio", 6, "test");
  facts.set("smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", 3, "test");
  facts.set("smsp__issue_active.avg.per_cycle_active", 0.25, "test");
  const Places places = estimated_places(kernels.at("far_lanes"), facts, {});
  expect_sound(places, "far_lanes");
  ASSERT_EQ(places.stalls.size(), 3u);
  EXPECT_EQ(places.stalls[0].stall, Stall::kLgThrottle);
  EXPECT_NEAR(places.stalls[0].share, 0.6, 1e-9);
  double exposed = 0;
  for (const StallShare& share : places.stalls) exposed += share.exposed;
  EXPECT_NEAR(exposed, 0.75, 1e-9);
  EXPECT_EQ(places.places.at(0).stall, Stall::kLgThrottle);
}

TEST(Places, SamplesOutsideTheCodeCountButHaveNoPlace) {
  const auto kernels = recorded_kernels(KERNELPRO_SOURCE_DIR, "patterns.sm_90a.txt");
  KernelSamples samples{"far_lanes", {{1 << 24, {{Stall::kWait, 5, 5}}}}};
  const Places places = sampled_places(kernels.at("far_lanes"), samples, {});
  EXPECT_EQ(places.samples, 5);
  EXPECT_TRUE(places.places.empty());
  ASSERT_EQ(places.stalls.size(), 1u);
  EXPECT_EQ(places.stalls[0].share, 1);
}

TEST(Places, AreAddedToEachKernelWithItsSamples) {
  const auto functions = recorded_kernels(KERNELPRO_SOURCE_DIR, "patterns.sm_90a.txt");
  std::map<std::string, KernelEvidence> kernels;
  kernels["far_lanes"], kernels["warp_sum"], kernels["unknown"];
  SampleAnswers answers;
  answers.source = "cupti";
  answers.kernels = {samples_everywhere(functions.at("far_lanes"))};
  answers.missing = {{Family::kSamples, "some were lost", "", {}, "of the rest"}};
  std::vector<Missing> missing;
  add_places(functions, answers, {}, &kernels, &missing);
  EXPECT_EQ(kernels["far_lanes"].facts.places->basis, Places::Basis::kSampled);
  EXPECT_GT(*kernels["far_lanes"].facts.get("samples.taken"), 0);
  EXPECT_EQ(kernels["warp_sum"].facts.places->basis, Places::Basis::kEstimated);
  EXPECT_FALSE(kernels["warp_sum"].facts.get("samples.taken"));
  EXPECT_FALSE(kernels["unknown"].facts.places);
  EXPECT_EQ(missing.size(), 1u);
  answers.missing.clear();
  missing.clear();
  add_places(functions, answers, {}, &kernels, &missing);
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_TRUE(contains(missing[0].reason, "no samples came of"));
}

}  // namespace
}  // namespace kernelpro
