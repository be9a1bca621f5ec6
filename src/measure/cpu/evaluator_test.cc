// SPDX-License-Identifier: Apache-2.0
// The cpu target against many kinds of candidates, with a real compiler and real processes.
#include "measure/cpu/evaluator.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <thread>

#include "base/process/processes.h"
#include "base/text.h"
#include "core/evaluation/load.h"
#include "core/plan/cpu_protocol.h"
#include "measure/cpu/testing.h"

namespace kernelpro {
namespace {

class CpuEvaluator : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    cache_ = new TempDir;
    task_ = new Task(testing::scale_task());
    auto compiler = make_cpu_compiler(testing::compile_settings(cache_->path()));
    ASSERT_TRUE(compiler) << compiler.error().text();
    compiler_ = compiler->release();
    EvaluateSettings settings;
    settings.timeout_s = 4;  // honest kernels need a thousandth of it
    auto evaluator = make_cpu_evaluator(*task_, Machine{}, settings);
    ASSERT_TRUE(evaluator) << evaluator.error().text();
    evaluator_ = evaluator->release();
    const Result<void> prepared = testing::prepare(*evaluator_, *task_, *compiler_);
    ASSERT_TRUE(prepared) << prepared.error().text();
  }
  static void TearDownTestSuite() {
    delete evaluator_;
    delete compiler_;
    delete task_;
    delete cache_;
  }

  // `all_cases`: false builds only the first, for candidates that get no further.
  static Subject build(const std::string& source, bool all_cases = true) {
    Candidate candidate;
    candidate.source = source;
    Subject subject;
    subject.hash = candidate.content_hash();
    for (const Case& c : task_->cases) {
      if (!all_cases && !subject.binaries.empty()) {
        subject.binaries.push_back(subject.binaries[0]);
        continue;
      }
      CompileResult built = compiler_->compile(*task_, c, candidate);
      EXPECT_TRUE(built) << built.error().text();
      const auto* error = std::get_if<CompileError>(&*built);
      EXPECT_EQ(error, nullptr) << error->log;
      if (error == nullptr) subject.binaries.push_back(std::get<Binary>(*built));
    }
    return subject;
  }

  static Evaluation evaluate(const std::string& source, bool all_cases = true) {
    const Subject subject = build(source, all_cases);
    Result<Evaluation> evaluation = evaluator_->evaluate(subject, nullptr);
    EXPECT_TRUE(evaluation) << evaluation.error().text();
    return *evaluation;
  }

  // Beside other work a comparison may stay undecided, so it is repeated a few times. `check` fails
  // the test when it is decided the wrong way, and returns whether it is decided the right way.
  // What other work kept undecided every time is neither right nor wrong; without other work it
  // has to be decided.
  static bool decided(const std::function<Result<Evaluation>()>& compare,
                      const std::function<bool(const Evaluation&)>& check) {
    constexpr int kTries = 6;
    bool always_busy = true;
    for (int i = 0; i < kTries; ++i) {
      const Result<Evaluation> evaluation = compare();
      EXPECT_TRUE(evaluation) << evaluation.error().text();
      if (!evaluation || check(*evaluation)) return evaluation.has_value();
      const Correct* correct = evaluation->correct();
      always_busy = always_busy && correct != nullptr && load_of(correct->observed).busy();
      std::printf("undecided: %s\n", said(correct).c_str());
    }
    if (always_busy) std::puts("undecided: other work kept this machine busy throughout");
    return always_busy;
  }

  // What an undecided comparison showed.
  static std::string said(const Correct* correct) {
    if (correct == nullptr) return "not correct";
    std::string text = correct->versus ? number(correct->versus->ratio, 4) + " (" +
                                             number(correct->versus->low, 4) + " to " +
                                             number(correct->versus->high, 4) + ")"
                                       : "no incumbent";
    for (const char* name : {"load.foreign_cpu", "load.pairs_dropped", "load.pairs_disturbed"}) {
      text += std::string(", ") + name + " " + number(correct->observed.at(name), 3);
    }
    for (const std::string& note : correct->notes) text += "; " + note;
    return text;
  }

  // Expects one kind of outcome and returns its text.
  template <class Kind>
  static Kind expect(const std::string& source, bool all_cases = false) {
    const Evaluation evaluation = evaluate(source, all_cases);
    const Kind* outcome = std::get_if<Kind>(&evaluation.outcome);
    EXPECT_NE(outcome, nullptr) << outcome_summary(evaluation.outcome);
    return outcome != nullptr ? *outcome : Kind{};
  }
  static void expect_crash(const std::string& source, const std::string& words) {
    const Crashed crashed = expect<Crashed>(source);
    EXPECT_TRUE(contains(crashed.reason, words)) << crashed.reason << "\n" << crashed.output;
  }
  static void expect_rejected(const std::string& source, const std::string& rule,
                              bool all_cases = false) {
    const Rejected rejected = expect<Rejected>(source, all_cases);
    EXPECT_EQ(rejected.rule, rule) << rejected.reason;
  }
  static void expect_wrong(const std::string& source, const std::string& words) {
    const WrongResult wrong = expect<WrongResult>(source);
    EXPECT_TRUE(contains(wrong.reason, words)) << wrong.reason;
  }

  static std::string good() { return testing::kernel("", "", ""); }

  static inline TempDir* cache_ = nullptr;
  static inline Task* task_ = nullptr;
  static inline Compiler* compiler_ = nullptr;
  static inline Evaluator* evaluator_ = nullptr;
};

TEST_F(CpuEvaluator, AGoodKernelIsCorrectAndTimed) {
  const Evaluation evaluation = evaluate(good());
  const Correct* correct = evaluation.correct();
  ASSERT_NE(correct, nullptr) << outcome_summary(evaluation.outcome);
  ASSERT_EQ(correct->timings.size(), 1u);
  EXPECT_EQ(correct->timings[0].case_name, "large");
  EXPECT_GT(correct->timings[0].median_us, 0);
  EXPECT_LE(correct->timings[0].low_us, correct->timings[0].median_us);
  EXPECT_LT(correct->max_error, 1);
  EXPECT_GE(correct->observed.at("load.foreign_cpu"), 0);
  EXPECT_LE(correct->observed.at("load.foreign_cpu"), 1);
  EXPECT_EQ(evaluation.trust, "in-process");
}

TEST_F(CpuEvaluator, OneThreadKeepsAtMostOneProcessorBusy) {
  const Evaluation evaluation =
      evaluate(testing::kernel("", "for (int i = 0; i < 60; ++i) compute(a);", ""));
  const Correct* correct = evaluation.correct();
  ASSERT_NE(correct, nullptr) << outcome_summary(evaluation.outcome);
  EXPECT_GT(correct->observed.at("cpu.threads_busy"), 0.03);  // less on a loaded machine
  EXPECT_LT(correct->observed.at("cpu.threads_busy"), 1.5);
}

// A worker killed from outside is not the kernel's crash; one that kills itself is.
TEST_F(CpuEvaluator, AWorkerThatIsKilledFromOutsideIsNotBlamed) {
  const Subject subject = build(testing::kernel("", "", "for (;;) asm volatile(\"\");"), false);
  std::atomic<bool> done{false};
  std::thread killer([&] {
    while (!done) {
      for (const pid_t pid : descendants(::getpid())) ::kill(pid, SIGKILL);
      ::usleep(2000);
    }
  });
  const Result<Evaluation> evaluation = evaluator_->evaluate(subject, nullptr);
  done = true;
  killer.join();
  ASSERT_TRUE(evaluation) << evaluation.error().text();
  const auto* crashed = std::get_if<Crashed>(&evaluation->outcome);
  ASSERT_NE(crashed, nullptr) << outcome_summary(evaluation->outcome);
  EXPECT_EQ(crashed->by, Crashed::By::kOutside) << crashed->reason;
}

// Each call stays below its limit, all together do not.
TEST_F(CpuEvaluator, WhatCallsWasteIsAddedUp) {
  const TimedOut late = expect<TimedOut>(
      testing::kernel("#include <time.h>\n", "",
                      "static int calls = 0; const timespec a_while{3, 300000000};\n"
                      "if (++calls > 1) nanosleep(&a_while, nullptr);"));
  EXPECT_TRUE(contains(late.phase, "wasted over all")) << late.phase;
}

TEST_F(CpuEvaluator, AKernelCannotPretendToBeKilledFromOutside) {
  for (const char* suicide : {"kill(getpid(), SIGKILL);", "raise(SIGTERM);", "raise(SIGINT);",
                              "fcntl(3, F_SETSIG, SIGKILL); fcntl(3, F_SETOWN, getpid());"}) {
    SCOPED_TRACE(suicide);
    const Evaluation evaluation =
        evaluate(testing::kernel("#include <fcntl.h>\n#include <signal.h>\n#include <unistd.h>\n",
                                 "", suicide),
                 false);
    EXPECT_FALSE(perhaps_killed(evaluation.outcome)) << outcome_summary(evaluation.outcome);
    EXPECT_TRUE(std::holds_alternative<Rejected>(evaluation.outcome))
        << outcome_summary(evaluation.outcome);
  }
}

TEST_F(CpuEvaluator, ASlowerKernelLosesBothWays) {
  const Subject fast = build(good());
  // A call takes longer than a turn ever waits for a processor, so that load cannot hide it.
  const Subject slow = build(testing::kernel("",
                                             "for (int i = 0; i < 40000; ++i) { compute(a); "
                                             "asm volatile(\"\" ::: \"memory\"); }",
                                             ""));
  const auto loses = [&](const Evaluation& evaluation) {
    const Correct* correct = evaluation.correct();
    EXPECT_NE(correct, nullptr) << outcome_summary(evaluation.outcome);
    if (correct == nullptr || !correct->versus) return false;
    EXPECT_LE(correct->versus->low, 1);
    EXPECT_EQ(correct->versus->incumbent, fast.hash);
    return correct->versus->high < 1 && correct->versus->ratio < 0.5;
  };
  const auto wins = [&](const Evaluation& evaluation) {
    const Correct* correct = evaluation.correct();
    EXPECT_NE(correct, nullptr) << outcome_summary(evaluation.outcome);
    if (correct == nullptr || !correct->versus) return false;
    EXPECT_GE(correct->versus->high, 1);
    return correct->versus->low > 1 && correct->versus->ratio > 2;
  };
  EXPECT_TRUE(decided([&] { return evaluator_->evaluate(slow, &fast); }, loses));
  EXPECT_TRUE(decided([&] { return evaluator_->confirm(fast, slow); }, wins));
}

TEST_F(CpuEvaluator, ThreadsAreAllowed) {
  const Evaluation evaluation =
      evaluate(testing::kernel("#include <thread>\n#include <omp.h>",
                               "std::thread([&] { compute(a); }).join();\n"
                               "#pragma omp parallel num_threads(2)\n  { omp_get_thread_num(); }",
                               ""));
  EXPECT_NE(evaluation.correct(), nullptr) << outcome_summary(evaluation.outcome);
}

TEST_F(CpuEvaluator, Faults) {
  expect_crash(testing::kernel("", "*(volatile int*)nullptr = 1;", ""), "wrote to a null pointer");
  expect_crash(testing::kernel("", "", "a.y[R * C] = 1;"), "past the end of tensor y (element 231");
  expect_crash(testing::kernel("", "", "a.y[R * C + 1000] = 1;"), "past the end of tensor y");
  expect_crash(testing::kernel("", "a.y[-1] = 1;", ""),
               "before the start of tensor y (element -1)");
  expect_crash(testing::kernel("", "const_cast<float*>(a.x)[5] = 1;", ""),
               "wrote to input tensor x");
  expect_crash(testing::kernel("#include <cstdlib>", "abort();", ""), "Aborted");
}

TEST_F(CpuEvaluator, LeavingLaunchByAnotherDoor) {
  expect_crash(testing::kernel("#include <cstdlib>", "", "exit(0);"), "exit status 0");
  expect_crash(testing::kernel("#include <stdexcept>", "throw std::runtime_error(\"oh\");", ""),
               "threw an exception out of launch (std::runtime_error)");
}

TEST_F(CpuEvaluator, TakingTooMuch) {
  const TimedOut late = expect<TimedOut>(testing::kernel("", "for (;;) asm volatile(\"\");", ""));
  EXPECT_TRUE(contains(late.phase, "checking case small")) << late.phase;
  expect_crash(testing::kernel("#include <vector>\n#include <memory>",
                               "std::vector<std::unique_ptr<char[]>> all;\n  "
                               "for (;;) all.emplace_back(new char[64 << 20]);",
                               ""),
               "memory limit");
  expect_crash(
      testing::kernel("#include <cstdio>", "for (;;) puts(\"a line of some length\");", ""),
      "printed more than");
}

TEST_F(CpuEvaluator, BreakingOut) {
  expect_rejected(testing::kernel("#include <unistd.h>", "for (;;) fork();", ""),
                  "no-new-processes");
  expect_rejected(testing::kernel("#include <cstdlib>", "if (system(\"true\")) {}", ""),
                  "system-calls");
  expect_rejected(
      testing::kernel("#include <unistd.h>", "execl(\"/bin/true\", \"true\", (char*)nullptr);", ""),
      "no-programs");
  expect_rejected(
      testing::kernel("#include <sys/socket.h>", "socket(AF_INET, SOCK_STREAM, 0);", ""),
      "no-network");
  expect_rejected(
      testing::kernel("#include <cstdio>",
                      "FILE* f = fopen(\"/tmp/kernelpro-x\", \"w\"); if (f) fclose(f);", ""),
      "no-file-writes");
  expect_rejected(
      testing::kernel("#include <signal.h>\n#include <unistd.h>", "kill(getppid(), SIGKILL);", ""),
      "no-other-processes");
  expect_rejected(
      testing::kernel("#include <unistd.h>", "if (unlink(\"/tmp/kernelpro-x\")) {}", ""),
      "system-calls");
  // The same applies before launch, in a constructor.
  expect_rejected(testing::kernel("#include <unistd.h>\nstatic int early = fork();", "", ""),
                  "no-new-processes");
}

TEST_F(CpuEvaluator, TheSupervisorsMemoryIsOutOfReach) {
  // Reads the supervisor's memory by name; when refused, it computes the correct result.
  const std::string source =
      testing::kernel("#include <cstdio>\n#include <fcntl.h>\n#include <unistd.h>",
                      "char path[64]; snprintf(path, sizeof path, \"/proc/%d/mem\", getppid());\n"
                      "  if (open(path, O_RDONLY) >= 0) return;",
                      "");
  const Evaluation evaluation = evaluate(source);
  EXPECT_NE(evaluation.correct(), nullptr) << outcome_summary(evaluation.outcome);
}

TEST_F(CpuEvaluator, WrongResults) {
  expect_wrong(testing::kernel("", "", "for (int r = 0; r < R; ++r) a.y[r * C + C - 1] += 1;"),
               "only in the tail of rows");
  expect_wrong(testing::kernel("", "", "a.y[R * C - 1] = 3e5f;"),
               "only the last element of the tensor");
  expect_wrong(testing::kernel("", "", "a.y[40] = __builtin_nanf(\"\");"),
               "first at [1, 7]: got nan");
  expect_wrong(
      "#include \"task.h\"\nextern \"C\" void launch(const Args& a) {\n"
      "  for (int r = 0; r < R; ++r) { a.n[r] = 0;\n"
      "    for (int c = 0; c < C; ++c) { if (c % 3 != 0) a.y[r * C + c] = 2 * a.x[r * C + c] + 1;\n"
      "      a.n[r] += a.x[r * C + c] > 0; } }\n}\n",
      "never written");
  expect_wrong(testing::kernel("", "", "a.n[3] += 1;"), "1 of 7 elements are wrong, first at [3]");
  // Caches its first result.
  expect_wrong(testing::kernel("static int calls;", "if (calls++ > 0) return;", ""),
               "never written");
}

TEST_F(CpuEvaluator, ResultsOfTimedCallsCount) {
  const std::string source =
      testing::kernel("static int calls;", "if (++calls > 8) { a.n[0] = -1; return; }", "");
  const WrongResult wrong = expect<WrongResult>(source, true);
  EXPECT_TRUE(contains(wrong.reason, "in a timed call")) << wrong.reason;
}

TEST_F(CpuEvaluator, WhatIsRememberedOfEarlierCallsIsWrong) {
  // Replays the first result cached for an input with the same first element.
  const std::string top =
      "#include <cstring>\n#include <map>\n#include <vector>\nstatic int calls;\n"
      "static std::vector<float> last;";
  const WrongResult wrong = expect<WrongResult>(
      testing::kernel(top,
                      "if (++calls > 6) { std::memcpy(a.y, last.data(), 4 * last.size()); "
                      "for (int r = 0; r < R; ++r) a.n[r] = 0; return; }",
                      "last.assign(a.y, a.y + R * C);"),
      true);
  EXPECT_TRUE(contains(wrong.reason, "in a timed call")) << wrong.reason;
}

TEST_F(CpuEvaluator, ContentsThatWereSeenAreNeverTimed) {
  // Caches every result by its input, and takes long on unknown inputs: it never looks fast.
  const std::string top =
      "#include <cstring>\n#include <map>\n#include <vector>\n"
      "struct Known { std::vector<float> y; std::vector<int> n; };\n"
      "static std::map<std::vector<float>, Known> all;\n";
  const std::string before =
      "const std::vector<float> key(a.x, a.x + R * C);\n"
      "  if (auto it = all.find(key); it != all.end()) {\n"
      "    std::memcpy(a.y, it->second.y.data(), 4 * R * C);\n"
      "    std::memcpy(a.n, it->second.n.data(), 4 * R); return; }\n"
      "  for (volatile int i = 0; i < 3000000; i = i + 1) {}";
  const std::string after =
      "all[key] = {std::vector<float>(a.y, a.y + R * C), std::vector<int>(a.n, a.n + R)};";
  const Evaluation evaluation = evaluate(testing::kernel(top, before, after));
  ASSERT_NE(evaluation.correct(), nullptr) << outcome_summary(evaluation.outcome);
  EXPECT_GT(evaluation.correct()->timings[0].median_us, 500);
}

// What a candidate does to its memory while it is warmed up is its own fault, not the incumbent's.
TEST_F(CpuEvaluator, AnIncumbentIsNotBlamed) {
  const Subject plain = build(good());
  const Subject strays =
      build(testing::kernel("static const float* warm; static int calls;",
                            "if (warm == a.x) a.y[-1] = 1; if (++calls == 12) warm = a.x;", ""));
  const Result<Evaluation> evaluation = evaluator_->evaluate(strays, &plain);
  ASSERT_TRUE(evaluation) << evaluation.error().text();
  const auto* crashed = std::get_if<Crashed>(&evaluation->outcome);
  ASSERT_NE(crashed, nullptr) << outcome_summary(evaluation->outcome);
  EXPECT_TRUE(contains(crashed->reason, "before the start of tensor y")) << crashed->reason;
}

TEST_F(CpuEvaluator, APretenceOfABrokenMachineIsRefused) {
  expect_rejected(testing::kernel("#include <unistd.h>\nstatic char m[516] = {0, 2};\n"
                                  "static long early = write(3, m, sizeof m);",
                                  "", ""),
                  "own-messages");
}

// It arrives before the order of the next call, or in place of an answer to this one.
TEST_F(CpuEvaluator, AnAnswerBeforeItsOrderIsRefused) {
  const Evaluation evaluation =
      evaluate(testing::kernel("#include <unistd.h>\nstatic int calls;", "",
                               "const int m[2] = {4, 0}; if (++calls == 3 && write(3, m, 8)) {}"));
  const auto* rejected = std::get_if<Rejected>(&evaluation.outcome);
  EXPECT_TRUE(rejected != nullptr ? rejected->rule == "own-messages"
                                  : std::holds_alternative<WrongResult>(evaluation.outcome))
      << outcome_summary(evaluation.outcome);
}

// Sizing cannot shorten turns: sleeping meanwhile only costs time.
TEST_F(CpuEvaluator, AKernelThatSleepsWhileItIsSizedGetsLongTurnsAllTheSame) {
  const Subject sleeps = build(testing::kernel(
      "#include <time.h>\nstatic int calls;",
      "if (++calls > 6 && calls < 14) { timespec t{0, 60000000}; nanosleep(&t, nullptr); }", ""));
  const Result<Evaluation> evaluation = evaluator_->evaluate(sleeps, nullptr);
  ASSERT_TRUE(evaluation) << evaluation.error().text();
  const Correct* correct = evaluation->correct();
  ASSERT_NE(correct, nullptr) << outcome_summary(evaluation->outcome);
  EXPECT_TRUE(contains(correct->timings[0].method, "a turn")) << correct->timings[0].method;
}

TEST_F(CpuEvaluator, TheEnvironmentStaysOutside) {
  ::setenv("KP_TEST_HIDDEN", "hunter2", 1);
  const Crashed crashed = expect<Crashed>(
      testing::kernel("#include <cstdio>\n#include <cstdlib>\n#include <unistd.h>",
                      "for (char** e = environ; *e; ++e) std::fprintf(stderr, \"%s\\n\", *e); "
                      "std::abort();",
                      ""));
  EXPECT_TRUE(contains(crashed.output, "OMP_NUM_THREADS=")) << crashed.output;
  EXPECT_FALSE(contains(crashed.output, "hunter2")) << crashed.output;
  EXPECT_FALSE(contains(crashed.output, "HOME=")) << crashed.output;
  ::unsetenv("KP_TEST_HIDDEN");
}

TEST_F(CpuEvaluator, ForgedClocks) {
  // Overriding the clock functions does not affect the worker's own.
  const std::string wait = "  for (volatile int i = 0; i < 400000; i = i + 1) {}\n";
  const Subject plain = build(testing::kernel("", wait, ""));
  const Subject forging =
      build(testing::kernel("#include <time.h>\nextern \"C\" int clock_gettime(clockid_t, "
                            "struct timespec* t) noexcept {\n"
                            "  t->tv_sec = 1; t->tv_nsec = 1; return 0; }",
                            wait, ""));
  const Result<Evaluation> forged = evaluator_->evaluate(forging, &plain);
  ASSERT_TRUE(forged) << forged.error().text();
  if (const Correct* correct = forged->correct()) {
    ASSERT_TRUE(correct->versus);
    EXPECT_LT(correct->versus->low, 1.5);
  } else {
    EXPECT_TRUE(std::holds_alternative<Rejected>(forged->outcome))
        << outcome_summary(forged->outcome);
  }
  // Nobody answers for the worker before the work is done ...
  const std::string early =
      "struct timespec t{0, 3000000}; nanosleep(&t, nullptr);\n"
      "  if (++calls > 3) { char m[64] = {}; const std::uint32_t n = SIZE; memcpy(m, &n, 4);\n"
      "    if (write(3, m, 4 + n)) {} struct timespec s{0, 200000000}; nanosleep(&s, nullptr); }";
  const std::string top =
      "#include <unistd.h>\n#include <time.h>\n#include <cstdint>\n#include <cstring>\n"
      "static int calls;";
  const std::string size = std::to_string(sizeof(CpuDone));
  expect_rejected(testing::kernel(top, replace_all(early, "SIZE", size), ""), "own-messages", true);
  // ... whatever the shape of the answer.
  expect_rejected(testing::kernel(top, replace_all(early, "SIZE", "16"), ""), "own-messages", true);
}

TEST_F(CpuEvaluator, ACandidateThatDoesNotCompile) {
  Candidate candidate;
  candidate.source =
      "#include \"task.h\"\nextern \"C\" void launch(const Args& a) {\n  a.z[0] = 1;\n}\n";
  CompileResult built = compiler_->compile(*task_, task_->cases[0], candidate);
  ASSERT_TRUE(built) << built.error().text();
  const auto* error = std::get_if<CompileError>(&*built);
  ASSERT_NE(error, nullptr);
  EXPECT_TRUE(contains(error->log, "kernel.cpp:3")) << error->log;
}

}  // namespace
}  // namespace kernelpro
