// SPDX-License-Identifier: Apache-2.0
// The role cuda-worker, from its supervisor's end of the channel: what it runs on which set, in
// which order, what it times, and what it says when something fails.
#if KERNELPRO_HAVE_CUDA

#include <algorithm>
#include <memory>

#include "measure/worker/roles.h"
#include "measure/worker/testing/fake_gpu.h"
#include "measure/worker/testing/role.h"

namespace kernelpro::testing {
namespace {

using Lines = std::vector<std::string>;

constexpr std::uint64_t kElements = 500;
constexpr std::uint64_t kBytes = JudgeMemory::kBytes;
constexpr std::uint64_t kFlush = 256u << 10;

struct Workers : FakeContext {
  Workers() : FakeContext(Needs::kJudgeKernels) {}
  void SetUp() override {
    FakeContext::SetUp();
    if (IsSkipped()) return;
    judge.open(cu(), 64u << 20);
    // y = x + 1; which call of its module this is goes into the workspace.
    fake::define("plus_one", {{8, 8, 8},
                              [](fake::Launch& launch) {
                                const float* x = launch.memory<float>(0, kElements);
                                float* y = launch.memory<float>(1, kElements);
                                int* calls = launch.memory<int>(2, 1);
                                if (x == nullptr || y == nullptr || calls == nullptr) return;
                                for (std::size_t i = 0; i < kElements; ++i) y[i] = x[i] + 1;
                                *calls = ++(*launch.globals)["calls"];
                              },
                              31.25});
    fake::define("deep", {{}, nullptr, 10, 3000});
    fake::define("deepest", {{}, nullptr, 10, 200 * 1024});
    fake::define("wild", {{}, [](fake::Launch& launch) { launch.bytes_at(64, 4); }});
    cubin = join(folder.path(), "k.cubin");
    ASSERT_TRUE(write_file(cubin, fake::image({"plus_one", "deep", "deepest", "wild"})));
  }
  void TearDown() override {
    const int status = role ? role->end() : 0;
    EXPECT_EQ(status, 0);
    role.reset();
    judge.close();
    FakeContext::TearDown();
  }

  void start() { role = std::make_unique<RoleThread>(cuda_worker); }
  // For tests of many rounds: reading and writing 128 MiB takes the longest.
  static void flush_nothing() {
    fake::define("poison", {{8, 8, 8}});
    fake::define("flush_cache", {{8, 8, 8}});
  }
  Json ask(const Json& message, const std::vector<int>& fds = {}) {
    return role->ask(message, fds);
  }
  // Opens a case with this many sets, each with its own memory: x[i] is 10 set + i.
  void open(int sets = 2) {
    if (!role) start();
    const Json answer = ask({{"do", "open"},
                             {"cases", Json::array({{{"case", "toy"},
                                                     {"layout", json_of(layout)},
                                                     {"sets", sets},
                                                     {"inputs", {true, false, false}}}})}});
    ASSERT_TRUE(ok(answer)) << answer;
    for (int set = 0; set < sets; ++set) {
      std::vector<Fd> fds;
      std::vector<int> numbers;
      for (std::size_t slot = 0; slot < layout.slots.size(); ++slot) {
        fds.push_back(judge.share());
        numbers.push_back(fds.back().get());
      }
      const Json given =
          ask({{"do", "memory"}, {"case", "toy"}, {"set", set}, {"slots", {0, 1, 2}}}, numbers);
      ASSERT_TRUE(ok(given)) << given;
      for (std::size_t i = 0; i < kElements; ++i) {
        data<float>(set, 0)[i] = static_cast<float>(10 * set) + static_cast<float>(i);
      }
    }
  }
  // As the judge sees a set.
  template <class T>
  T* data(int set, int slot) {
    const AddressLayout::Slot& s = layout.slots[static_cast<std::size_t>(slot)];
    return at<T>(judge.base() + static_cast<std::uint64_t>(3 * set + slot) * kBytes +
                 (s.address - s.mapping));
  }
  Json load(const LaunchPlan& plan, const std::string& subject = "candidate") {
    return ask({{"do", "load"},
                {"case", "toy"},
                {"subject", subject},
                {"cubin", cubin},
                {"plan", json_of(plan)}});
  }
  Json run(const std::vector<Json>& steps, const std::string& subject = "candidate") {
    return ask({{"do", "run"}, {"case", "toy"}, {"subject", subject}, {"steps", steps}});
  }
  Json time(const std::vector<Json>& steps, const Lines& reload = {}, std::uint64_t key = 1) {
    return ask(
        {{"do", "time"}, {"case", "toy"}, {"key", key}, {"reload", reload}, {"steps", steps}});
  }
  static Json call(int set, int key) { return {{"set", set}, {"key", key}}; }
  static Json step(int set, bool timed, const char* subject = "candidate") {
    return {{"subject", subject}, {"set", set}, {"timed", timed}};
  }
  static LaunchPlan plan() {
    return in_a_row({kernel("plus_one", {tensor(0), tensor(1), workspace()})});
  }
  static Lines only(const Lines& wanted) {
    Lines found;
    for (const std::string& line : fake::log()) {
      if (std::find(wanted.begin(), wanted.end(), line) != wanted.end()) found.push_back(line);
    }
    return found;
  }
  // The launches of one of the judge's kernels.
  static std::vector<fake::Launch> launches(const std::string& name) {
    std::vector<fake::Launch> found;
    for (const fake::Launch& launch : fake::launches()) {
      if (launch.kernel == name) found.push_back(launch);
    }
    return found;
  }

  const TempDir folder;
  std::string cubin;
  const AddressLayout layout = toy_layout(kElements, 64);
  JudgeMemory judge;
  std::unique_ptr<RoleThread> role;
};

TEST_F(Workers, RunACallOnEachSetWithFreshGlobals) {
  open(3);
  const Json loaded = load(plan());
  ASSERT_TRUE(ok(loaded)) << loaded;
  EXPECT_EQ(loaded["facts"], (Json{{"launch__waves_per_multiprocessor", 4.0 / (8 * 4)}}))
      << "what the plan says is for its readers";
  fake::clear_log();
  const Json answer = run({call(2, 5), call(0, 6)});
  ASSERT_TRUE(ok(answer)) << answer;
  EXPECT_EQ(data<float>(2, 1)[3], 24);
  EXPECT_EQ(data<float>(0, 1)[3], 4);
  EXPECT_EQ(data<float>(1, 1)[3], 0) << "it was not named";
  EXPECT_EQ(*data<int>(2, 2), 1);
  EXPECT_EQ(*data<int>(0, 2), 1) << "the second call found the first one's globals";
  // Shared memory is overwritten between a set's memory and its call, each time with its own key.
  EXPECT_EQ(only({"ModuleLoadData", "launch scrub_shared", "run plus_one", "StreamSynchronize"}),
            (Lines{"ModuleLoadData", "launch scrub_shared", "run plus_one", "StreamSynchronize",
                   "ModuleLoadData", "launch scrub_shared", "run plus_one", "StreamSynchronize"}));
  const auto scrubs = launches("scrub_shared");
  EXPECT_EQ(scrubs[0].value<std::uint64_t>(0), 5u);
  EXPECT_EQ(scrubs[1].value<std::uint64_t>(0), 6u);
  EXPECT_EQ(scrubs[0].value<unsigned>(1), 232448u / 4) << "all of it";
  EXPECT_EQ(scrubs[0].grid[0], 4u) << "on every multiprocessor";
}

// Steps that no edge orders run in both orders; a chain runs as it is.
TEST_F(Workers, CheckBranchesInOppositeOrders) {
  fake::define("left", {});
  fake::define("right", {});
  ASSERT_TRUE(write_file(cubin, fake::image({"left", "right"})));
  open(3);
  LaunchPlan branches = in_a_row({kernel("left", {}), kernel("right", {})});
  ASSERT_TRUE(ok(load(branches)));
  EXPECT_EQ(run({call(0, 1), call(1, 2), call(2, 3)})["reordered"], Json::array());
  branches.edges.clear();
  ASSERT_TRUE(ok(load(branches)));
  fake::clear_log();
  EXPECT_EQ(run({call(0, 1), call(1, 2), call(2, 3)})["reordered"], (Json{1, 2}));
  const Lines order = only({"run left", "run right"});
  ASSERT_EQ(order.size(), 6u);
  EXPECT_EQ(order[0], "run right") << "as the driver likes it";
  EXPECT_NE(order[2], order[4]);
  fake::clear_log();
  ASSERT_TRUE(ok(time({step(0, true), step(1, true)}, {"candidate"})));
  EXPECT_EQ(only({"run left", "run right"}),
            (Lines{"run right", "run left", "run right", "run left"}));
}

TEST_F(Workers, OverwriteLocalMemoryThatKernelsUse) {
  open();
  ASSERT_TRUE(ok(load(in_a_row({kernel("deep", {})}))));
  fake::clear_log();
  ASSERT_TRUE(ok(run({call(0, 5)})));
  const auto scrubs = launches("scrub_local_8k");
  ASSERT_EQ(scrubs.size(), 1u);
  EXPECT_EQ(scrubs[0].value<std::uint64_t>(0), 5u);
  EXPECT_EQ(scrubs[0].grid[0] * scrubs[0].block[0], 4u * 2048) << "every thread that the GPU holds";
  const Json loaded = load(in_a_row({kernel("deepest", {})}));
  ASSERT_TRUE(ok(loaded));
  EXPECT_TRUE(contains(dump_json(loaded["notes"]), "204800 bytes for each thread"));
}

TEST_F(Workers, TimeTheGraphAloneAndCold) {
  open();
  ASSERT_TRUE(ok(load(plan())));
  fake::clear_log();
  const Json answer = time({step(1, true)});
  ASSERT_TRUE(ok(answer)) << answer;
  EXPECT_EQ(answer["times"], Json::array({31.25}));
  EXPECT_EQ(data<float>(1, 1)[0], 11);
  const Lines order = only({"launch poison", "MemMap", "CtxResetPersistingL2Cache",
                            "launch flush_cache", "launch touch_pages", "EventRecord",
                            "GraphLaunch", "EventSynchronize", "EventElapsedTime"});
  EXPECT_EQ(order, (Lines{"launch poison", "MemMap", "MemMap", "MemMap",
                          "CtxResetPersistingL2Cache", "launch flush_cache", "launch touch_pages",
                          "launch touch_pages", "launch touch_pages", "EventRecord", "GraphLaunch",
                          "EventRecord", "EventSynchronize", "EventElapsedTime"}));
  // The flush reads more than L2, all of which was just rewritten.
  const fake::Launch flush = launches("flush_cache")[0], noise = launches("poison")[0];
  EXPECT_EQ(flush.value<std::uint64_t>(0), noise.value<std::uint64_t>(0));
  EXPECT_EQ(16 * flush.value<std::uint64_t>(1), kFlush);
  EXPECT_EQ(4 * noise.value<std::uint64_t>(2), kFlush);
  for (const fake::Launch& touch : launches("touch_pages")) {
    EXPECT_EQ(touch.value<std::uint64_t>(1), 1u) << "pages of a slot";
  }
}

TEST_F(Workers, RewriteTheFlushBufferFromTheKey) {
  open();
  ASSERT_TRUE(ok(load(plan())));
  std::vector<unsigned> words;
  for (const std::uint64_t key : {7ull, 8ull, 7ull}) {
    fake::clear_log();
    ASSERT_TRUE(ok(time({}, {}, key)));
    words.push_back(*at<unsigned>(launches("poison")[0].value<std::uint64_t>(0)));
  }
  EXPECT_NE(words[0], words[1]);
  EXPECT_EQ(words[0], words[2]);
}

TEST_F(Workers, TimeEachStepOnItsOwnSet) {
  open(4);
  ASSERT_TRUE(ok(load(plan(), "candidate")));
  ASSERT_TRUE(ok(load(in_a_row({kernel("plus_one", {tensor(0), tensor(1), workspace()}),
                                kernel("plus_one", {tensor(1), tensor(1), workspace()})}),
                      "incumbent")));
  const Json answer =
      time({step(3, false), step(0, true), step(1, true, "incumbent"), step(2, true)});
  ASSERT_TRUE(ok(answer)) << answer;
  EXPECT_EQ(answer["times"], Json::array({nullptr, 31.25, 62.5, 31.25}));
  EXPECT_EQ(data<float>(3, 1)[0], 31);
  EXPECT_EQ(data<float>(0, 1)[0], 1);
  EXPECT_EQ(data<float>(1, 1)[0], 12);
  EXPECT_EQ(data<float>(2, 1)[0], 21);
}

TEST_F(Workers, KeepAModuleBetweenTimedCallsUnlessToldToReload) {
  open();
  ASSERT_TRUE(ok(load(plan())));
  ASSERT_TRUE(ok(time({step(0, false), step(1, true)})));
  EXPECT_EQ(*data<int>(1, 2), 2);
  fake::clear_log();
  ASSERT_TRUE(ok(time({step(0, true)}, {"candidate"})));
  EXPECT_EQ(*data<int>(0, 2), 1);
  EXPECT_EQ(only({"ModuleLoadData", "launch scrub_shared", "launch flush_cache"}),
            (Lines{"ModuleLoadData", "launch scrub_shared", "launch flush_cache"}));
}

// What a captured PyTorch call brings along: several cubins, memory of its own, a table.
TEST_F(Workers, GiveAPlanItsScratchAnewBeforeEachCall) {
  // y[0] = table[0], y[1] = what the scratch held; which it then overwrites.
  fake::define("remember", {{8, 8},
                            [](fake::Launch& launch) {
                              float* y = launch.memory<float>(0, kElements);
                              int* scratch = launch.memory<int>(1, 129);
                              if (y == nullptr || scratch == nullptr) return;
                              y[0] = static_cast<float>(scratch[128]);
                              reinterpret_cast<int*>(y)[1] = scratch[0];
                              scratch[0] = scratch[128] = 7;
                            },
                            31.25});
  const std::string other = join(folder.path(), "other.cubin"), table = join(folder.path(), "t");
  ASSERT_TRUE(write_file(other, fake::image({"remember"})));
  const int value = 42;
  ASSERT_TRUE(write_file(table, std::string(reinterpret_cast<const char*>(&value), 4)));
  LaunchPlan both =
      in_a_row({kernel("plus_one", {tensor(0), tensor(1), workspace()}),
                kernel("remember", {tensor(1), constant(kCandidateBase + kScratchOffset)})});
  both.nodes[1].image = 1;
  both.scratch_bytes = 516;
  both.constants = {{512, 4, table}};
  flush_nothing();
  fake::define("poison", {{8, 8, 8}, [](fake::Launch& launch) {
                            const auto count = launch.value<std::uint64_t>(2);
                            if (launch.value<std::uint64_t>(0) != kCandidateBase + kScratchOffset)
                              return;
                            int* words = launch.memory<int>(0, count);
                            for (std::size_t i = 0; words != nullptr && i < count; ++i) {
                              words[i] = launch.value<int>(1);
                            }
                          }});
  open();
  const auto load_both = [&](const LaunchPlan& plan) {
    return ask({{"do", "load"},
                {"case", "toy"},
                {"subject", "candidate"},
                {"images", {cubin, other}},
                {"plan", *parse_json(plan_to_json(plan))}});
  };
  const Json loaded = load_both(both);
  ASSERT_TRUE(ok(loaded)) << loaded;
  ASSERT_TRUE(ok(run({call(0, 5), call(1, 6)})));
  for (const int set : {0, 1}) {
    EXPECT_EQ(data<float>(set, 1)[0], 42) << "the table stands there again";
    EXPECT_EQ(data<int>(set, 1)[1], 5 + set) << "and nothing else";
    EXPECT_EQ(data<float>(set, 1)[2], data<float>(set, 0)[2] + 1);
  }
  const Json timed = time({step(0, true), step(1, true)}, {"candidate"}, 9);
  ASSERT_TRUE(ok(timed)) << timed;
  EXPECT_EQ(timed["times"], Json::array({62.5, 62.5}));
  EXPECT_EQ(data<int>(1, 1)[1], 9);
  EXPECT_EQ(data<float>(1, 1)[0], 42);
  // A plan without scratch may not use its addresses.
  LaunchPlan copying = in_a_row({kernel("plus_one", {tensor(0), tensor(1), workspace()})});
  PlanNode copy;
  copy.kind = PlanNode::Kind::kMemcpy;
  copy.source = tensor(0);
  copy.destination = constant(kCandidateBase + kScratchOffset);
  copy.width = 4;
  copying.nodes.push_back(copy);
  EXPECT_EQ(rule(load_both(copying)), "plan");
  copying.scratch_bytes = 4;
  EXPECT_TRUE(ok(load_both(copying)));
  both.constants[0].bytes = 3;
  EXPECT_TRUE(contains(error(load_both(both)), "another size"));
  both.constants[0].offset = 600;
  EXPECT_EQ(rule(load_both(both)), "plan");
}

// A module of the same code at another place than the last few, but not one more for each load.
TEST_F(Workers, KeepAFewModulesOnly) {
  flush_nothing();
  open();
  ASSERT_TRUE(ok(load(plan())));
  std::string alive;
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(ok(time({}, {"candidate"})));
    if (i > 4) {
      EXPECT_EQ(fake::alive(), alive);
    }
    alive = fake::alive();
  }
  // Where memory is short, the old ones go.
  fake::fail("ModuleLoadData", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(ok(time({step(0, true)}, {"candidate"})));
  EXPECT_NE(fake::alive(), alive);
}

TEST_F(Workers, SayWhatTheyCannotDo) {
  start();
  EXPECT_EQ(error(ask({{"do", "dance"}})), "unknown command");
  EXPECT_EQ(error(ask(Json::object())), "unknown command");
  EXPECT_TRUE(ok(ask({{"do", "hello"}})));
  EXPECT_EQ(error(load(plan())), "no such case");
  EXPECT_EQ(error(run({})), "no such case");
  EXPECT_EQ(error(time({})), "no such case");
  EXPECT_EQ(error(ask({{"do", "open"}})), "no case is named");
  open();
  EXPECT_EQ(error(run({call(0, 1)})), "no subject candidate");
  EXPECT_EQ(error(time({step(0, true)})), "no subject candidate");
  EXPECT_EQ(error(time({}, {"candidate"})), "no subject candidate");
  ASSERT_TRUE(ok(load(plan())));
  EXPECT_EQ(error(run({call(2, 1)})), "no such set");
  EXPECT_EQ(error(time({step(-1, true)})), "no such set");
  EXPECT_EQ(error(time({Json{{"subject", "candidate"}}})), "no such set");
  EXPECT_TRUE(ok(time({step(0, true)}))) << "it still serves";
}

TEST_F(Workers, RefuseAPlanThatDoesNotFit) {
  open();
  const Json misfit = load(in_a_row({kernel("plus_one", {})}));
  EXPECT_EQ(rule(misfit), "plan");
  EXPECT_TRUE(contains(error(misfit), "takes more parameters")) << misfit;
  EXPECT_EQ(
      rule(ask({{"do", "load"}, {"case", "toy"}, {"subject", "candidate"}, {"cubin", cubin}})),
      "plan");
}

// Neither an empty graph nor what had the name before may run as the new subject.
TEST_F(Workers, ForgetASubjectThatDidNotLoad) {
  open();
  ASSERT_TRUE(ok(load(plan())));
  ASSERT_FALSE(ok(load(in_a_row({kernel("missing", {})}))));
  EXPECT_EQ(error(time({step(0, true)})), "no subject candidate");
  EXPECT_EQ(error(run({call(0, 1)})), "no subject candidate");
  ASSERT_TRUE(ok(load(plan())));
  fake::fail("ModuleLoadData", CUDA_ERROR_OUT_OF_MEMORY);
  fake::fail("ModuleLoadData", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_FALSE(ok(run({call(0, 1)})));
  EXPECT_FALSE(ok(time({step(0, true)}))) << "its graph is gone";
  EXPECT_TRUE(ok(run({call(0, 1)})));
}

TEST_F(Workers, ReportACrashAndEverythingAfterIt) {
  open();
  ASSERT_TRUE(ok(load(in_a_row({kernel("wild", {})}))));
  for (const char* what : {"run", "time", "load"}) {
    const Json answer = std::string(what) == "run"    ? run({call(0, 1)})
                        : std::string(what) == "time" ? time({step(0, true)})
                                                      : load(plan(), "incumbent");
    EXPECT_TRUE(contains(error(answer), "CUDA_ERROR_ILLEGAL_ADDRESS")) << what << answer;
    EXPECT_EQ(rule(answer), "none") << what << answer;
  }
}

TEST_F(Workers, BlameTheGpuForItsOwnFaults) {
  open();
  ASSERT_TRUE(ok(load(plan())));
  fake::break_context(CUDA_ERROR_ECC_UNCORRECTABLE);
  for (const Json& answer : {run({call(0, 1)}), time({step(0, true)}), load(plan())}) {
    EXPECT_TRUE(contains(error(answer), "ECC_UNCORRECTABLE")) << answer;
    EXPECT_EQ(rule(answer), "environment") << answer;
  }
}

TEST_F(Workers, DoNotBlameThePlanForMissingMemory) {
  open();
  for (int i = 0; i < 2; ++i) fake::fail("ModuleLoadData", CUDA_ERROR_OUT_OF_MEMORY);
  const Json answer = load(plan());
  EXPECT_TRUE(contains(error(answer), "OUT_OF_MEMORY")) << answer;
  EXPECT_EQ(rule(answer), "none");
}

// A worker whose set-up fails answers every command with the reason, and leaves nothing behind.
TEST_F(Workers, WithoutAContextSayWhy) {
  const std::uint64_t before = fake::calls();
  start();
  ASSERT_TRUE(ok(ask({{"do", "hello"}})));
  role.reset();
  const std::uint64_t count = fake::calls() - before;
  const std::string alive = fake::alive();
  int refused = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    fake::fail_call(i, CUDA_ERROR_OUT_OF_MEMORY);
    start();
    for (int k = 0; k < 2; ++k) {
      const Json answer = ask({{"do", "hello"}});
      if (ok(answer)) continue;
      ++refused;
      EXPECT_TRUE(contains(error(answer), "OUT_OF_MEMORY")) << answer;
      EXPECT_EQ(rule(answer), "none");
    }
    role.reset();
    ASSERT_EQ(fake::alive(), alive) << fake::failed();
  }
  EXPECT_GT(refused, 10);
}

TEST_F(Workers, EndWhenTheirSupervisorSendsNonsense) {
  for (const char* nonsense : {"", "{", "[]", "{\"do\":\"hello\"", "\xff\xfe", "null"}) {
    start();
    EXPECT_TRUE(role->ask_bytes(nonsense).is_null()) << nonsense;
    EXPECT_EQ(role->end(), 0);
  }
}

// Any call may fail at any time: the answer says so, and the next order finds a sound worker.
TEST_F(Workers, SurviveEveryFailureOfARound) {
  flush_nothing();
  open();
  ASSERT_TRUE(ok(load(plan())));
  const auto round = [&] {
    const Json answer = time({step(0, false), step(1, true)}, {"candidate"});
    return ok(answer) && ok(run({call(1, 3)}));
  };
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(round());  // past modules are full
  const std::uint64_t before = fake::calls();
  ASSERT_TRUE(round());
  const std::uint64_t count = fake::calls() - before;
  const std::string alive = fake::alive();
  for (std::uint64_t i = 0; i < count; ++i) {
    fake::fail_call(i, CUDA_ERROR_OUT_OF_MEMORY);
    round();
    for (int k = 0; k < 6; ++k) ASSERT_TRUE(round()) << "after " << fake::failed();
    ASSERT_EQ(fake::alive(), alive) << "after " << fake::failed();
    ASSERT_EQ(data<float>(1, 1)[7], 18);
  }
}

}  // namespace
}  // namespace kernelpro::testing

#endif
