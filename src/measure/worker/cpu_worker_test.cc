// SPDX-License-Identifier: Apache-2.0
// The role cpu as a process, from its supervisor's end of the channel: orders, damaged orders, and
// what the status page says of a candidate that dies.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/process/subprocess.h"
#include "base/process/worker_path.h"
#include "base/testing.h"
#include "base/text.h"
#include "core/plan/cpu_protocol.h"

namespace kernelpro {
namespace {

constexpr std::int64_t kPage = 4096;
constexpr std::int64_t kTensorBytes = 400;
constexpr int kSets = 3;

template <class T>
std::string bytes_of(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

// Args of the entry point.
constexpr const char* kArgs = "struct Args { const float* x; float* y; int* calls; };\n";

struct CpuWorker : ::testing::Test {
  void SetUp() override {
    for (Fd* file : {&status, &inputs, &outputs}) {
      *file = Fd(::memfd_create("test", MFD_CLOEXEC));
      ASSERT_EQ(::ftruncate(file->get(), (2 * kSets + 1) * kPage), 0);
    }
    page = map<CpuStatus>(status, 0);
    new (page) CpuStatus;
  }
  // The supervisor's view of a page.
  template <class T>
  static T* map(const Fd& file, std::int64_t at) {
    void* data = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), at * kPage);
    return static_cast<T*>(data);
  }
  float* x(int set) { return reinterpret_cast<float*>(map<char>(inputs, set) + kFirst); }
  float* y(int set) { return reinterpret_cast<float*>(map<char>(outputs, set) + kFirst); }

  // Builds a shared object whose entry point has this body.
  std::string object(const std::string& body, const std::string& top = "") {
    const std::string source = join(folder.path(), "k.cpp"), built = join(folder.path(), "k.so");
    EXPECT_TRUE(write_file(source, "#include <cstdlib>\n#include <sys/socket.h>\n" + top + kArgs +
                                       "extern \"C\" void " + kCpuEntry + "(const Args& args) {\n" +
                                       body + "\n}\n"));
    Command command;
    command.argv = {"c++", "-O0", "-shared", "-fPIC", "-o", built, source};
    const auto compiled = run(command);
    EXPECT_TRUE(compiled && compiled->ok()) << (compiled ? compiled->output : "");
    return built;
  }
  static constexpr const char* kTwice =
      "for (int i = 0; i < 100; ++i) args.y[i] = 2 * args.x[i];\n++*args.calls;";

  void start() {
    Command command;
    command.argv = {*worker_path(), "cpu"};
    auto started = Child::start(command);
    ASSERT_TRUE(started) << started.error().text();
    child = std::move(*started);
  }
  static std::string setup() {
    CpuSetup setup;
    setup.tensors = 2;
    setup.sets = kSets;
    setup.has_workspace = 1;
    std::string bytes = bytes_of(setup);
    for (std::int64_t set = 0; set < kSets; ++set) {
      bytes += bytes_of(CpuSlot{set * kPage, kPage, kFirst, kTensorBytes, 0, 0});
      bytes += bytes_of(CpuSlot{set * kPage, kPage, kFirst, kTensorBytes, 1, 0});
    }
    bytes += bytes_of(CpuSlot{kSets * kPage, kPage, 0, kPage, 1, 0});
    return bytes;
  }
  // The problem that it reports; "" when it is ready, "gone" when it ended.
  std::string begin(const std::string& path) {
    const Fd object(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_TRUE(object.valid());
    return begin(setup(), {status.get(), inputs.get(), outputs.get(), object.get()});
  }
  std::string begin(const std::string& frame, const std::vector<int>& fds) {
    start();
    child.send(frame, fds);
    // Before it loads the candidate, and after.
    for (int message = 0; message < 2; ++message) {
      const std::optional<Frame> answer = child.receive(600);
      if (!answer || answer->bytes.size() < sizeof(CpuReady)) return "gone";
      CpuReady ready;
      std::memcpy(&ready, answer->bytes.data(), sizeof ready);
      EXPECT_EQ(ready.ok != 0, ready.problem[0] == 0);
      if (ready.ok == 0) return ready.problem;
    }
    return "";
  }
  // Whether it answers.
  bool call(int first, int sets, int repeats = 1) {
    child.send(bytes_of(CpuCall{first, sets, repeats, 0}));
    return child.receive(600).has_value();
  }
  int calls() { return *map<int>(outputs, kSets); }

  static constexpr std::int64_t kFirst = (kPage - kTensorBytes) / kCpuSlotAlign * kCpuSlotAlign;
  const TempDir folder;
  Fd status, inputs, outputs;
  CpuStatus* page = nullptr;
  Child child;
};

TEST_F(CpuWorker, CallsTheSetsThatAreOrdered) {
  for (int set = 0; set < kSets; ++set) x(set)[7] = static_cast<float>(set + 1);
  ASSERT_EQ(begin(object(kTwice)), "");
  EXPECT_EQ(calls(), 0);
  ASSERT_TRUE(call(1, 2));
  EXPECT_EQ(y(0)[7], 0);
  EXPECT_EQ(y(1)[7], 4);
  EXPECT_EQ(y(2)[7], 6);
  EXPECT_EQ(calls(), 2);
  ASSERT_TRUE(call(0, 3, 5));
  EXPECT_EQ(calls(), 17);
  ASSERT_TRUE(call(0, 0));
  ASSERT_TRUE(call(kSets, 0));
  ASSERT_TRUE(call(0, 1, -1));
  EXPECT_EQ(calls(), 17);
  EXPECT_TRUE(child.wait(600).ok()) << "its supervisor has gone";
}

TEST_F(CpuWorker, RefusesADamagedSetUp) {
  const std::string whole = setup();
  const std::vector<int> fds = {status.get(), inputs.get(), outputs.get()};
  for (const std::size_t bytes :
       {std::size_t{0}, sizeof(CpuSetup) - 1, sizeof(CpuSetup), whole.size() - 1}) {
    EXPECT_EQ(begin(whole.substr(0, bytes), fds), "a short set-up frame") << bytes;
    EXPECT_EQ(child.wait(600).code, 1);
  }
  EXPECT_EQ(begin(whole, {status.get(), inputs.get()}), "a short set-up frame");
  CpuSetup empty;
  EXPECT_EQ(begin(bytes_of(empty), fds), "an empty set-up frame");
  EXPECT_EQ(begin(whole, fds), "") << "no object: calls do nothing";
  EXPECT_TRUE(call(0, kSets));
}

TEST_F(CpuWorker, SaysWhyAnObjectDoesNotLoad) {
  const std::string text = join(folder.path(), "text.so");
  ASSERT_TRUE(write_file(text, "no object"));
  const std::string problem = begin(text);
  EXPECT_TRUE(problem.starts_with("the shared object cannot be loaded: ")) << problem;
  EXPECT_FALSE(contains(problem, folder.path())) << problem;
  EXPECT_EQ(child.wait(600).code, 1);
}

// Orders come from a trusted process, but a wrong one must not run anything.
TEST_F(CpuWorker, EndsOnADamagedOrder) {
  const std::string built = object(kTwice);
  const std::vector<std::pair<int, int>> orders = {{-1, 1}, {0, -1}, {0, 4},
                                                   {3, 1},  {1, 3},  {2147483647, 2147483647}};
  for (const auto& [first, sets] : orders) {
    ASSERT_EQ(begin(built), "");
    EXPECT_FALSE(call(first, sets)) << first << " " << sets;
    EXPECT_EQ(child.finish().code, 1);
  }
  ASSERT_EQ(begin(built), "");
  child.send("short");
  EXPECT_FALSE(child.receive(600));
  EXPECT_EQ(child.finish().code, 1);
  EXPECT_EQ(calls(), 0);
}

TEST_F(CpuWorker, LeavesTheReasonOfItsDeath) {
  struct Death {
    const char* body;
    int signal;
    bool is_write;
  };
  const Death deaths[] = {
      {"*args.calls = args.x[-1000] > 0;", SIGSEGV, false},
      {"args.y[128] = 1;", SIGSEGV, true},                    // past the end of the pages
      {"const_cast<float*>(args.x)[0] = 1;", SIGSEGV, true},  // an input
      {"std::abort();", SIGABRT, false},
  };
  for (const Death& death : deaths) {
    new (page) CpuStatus;
    ASSERT_EQ(begin(object(death.body)), "");
    EXPECT_FALSE(call(0, 1)) << death.body;
    const Exit& exit = child.finish();
    EXPECT_EQ(exit.kind, Exit::Kind::kSignalled) << death.body;
    EXPECT_EQ(exit.code, death.signal) << death.body;
    EXPECT_EQ(page->signal, death.signal) << death.body;
    EXPECT_EQ(page->is_write != 0, death.is_write) << death.body;
  }
}

// No name of a file leads anywhere, but the descriptors that it has can be asked about.
TEST_F(CpuWorker, NoNameLeadsAnywhere) {
  const std::string body =
      "struct stat st; *args.calls = 1;\n"
      "if (open(\"/\", O_RDONLY) < 0 && errno == ENOENT) *args.calls *= 2;\n"
      "if (open(\"/no/such\", O_RDONLY) < 0 && errno == ENOENT) *args.calls *= 3;\n"
      "if (stat(\"/\", &st) != 0 && errno == ENOENT) *args.calls *= 5;\n"
      "if (fstat(1, &st) == 0 && S_ISFIFO(st.st_mode)) *args.calls *= 7;\n"
      "if (fstatat(AT_FDCWD, \"/\", &st, AT_EMPTY_PATH) != 0) *args.calls *= 11;\n"
      "char text[8] = {};\n"
      "const int cpus = open(\"/sys/devices/system/cpu/online\", O_RDONLY);\n"
      "if (read(cpus, text, 7) > 0) *args.calls *= 13;\n";
  ASSERT_EQ(begin(object(body,
                         "#include <cerrno>\n#include <fcntl.h>\n"
                         "#include <sys/stat.h>\n#include <unistd.h>\n")),
            "");
  ASSERT_TRUE(call(0, 1));
  EXPECT_EQ(calls(), 2 * 3 * 5 * 7 * 11 * 13);
}

TEST_F(CpuWorker, NamesTheRefusedSystemCall) {
  ASSERT_EQ(begin(object("socket(AF_INET, SOCK_STREAM, 0);")), "");
  EXPECT_FALSE(call(0, 1));
  EXPECT_EQ(child.finish().code, 159);
  EXPECT_EQ(page->signal, SIGSYS);
  EXPECT_EQ(page->system_call, SYS_socket);
}

// The sum of address and length must not come out below what is fixed.
TEST_F(CpuWorker, RefusesLengthsThatReachAroundAllAddresses) {
  for (const char* length :
       {"0xffffffff0000", "0xfffffffff000", "1ul << 47", "(1ul << 48) - 65536"}) {
    new (page) CpuStatus;
    ASSERT_EQ(begin(object("mprotect(reinterpret_cast<void*>(65536), " + std::string(length) +
                               ", PROT_READ);",
                           "#include <sys/mman.h>\n")),
              "");
    EXPECT_FALSE(call(0, 1)) << length;
    EXPECT_EQ(child.finish().code, 159) << length;
    EXPECT_EQ(page->system_call, SYS_mprotect) << length;
  }
}

TEST_F(CpuWorker, RefusesSignalsToItselfAndMessages) {
  struct Refused {
    const char* body;
    long number;
  };
  const Refused all[] = {
      {"kill(getpid(), SIGCONT);", SYS_kill},
      {"raise(SIGCONT);", SYS_tgkill},
      {"syscall(SYS_tkill, getpid(), SIGCONT);", SYS_tkill},
      {"msghdr m{}; sendmsg(3, &m, 0);", SYS_sendmsg},
      {"timer_t t; timer_create(CLOCK_MONOTONIC, nullptr, &t);", SYS_timer_create},
      {"clone([](void*) { return 0; }, new char[65536] + 65536, CLONE_VM | CLONE_SIGHAND | "
       "CLONE_THREAD | CLONE_VFORK, nullptr);",
       SYS_clone},
  };
  for (const Refused& each : all) {
    new (page) CpuStatus;
    ASSERT_EQ(begin(object(each.body,
                           "#include <sched.h>\n#include <signal.h>\n"
                           "#include <sys/syscall.h>\n#include <time.h>\n"
                           "#include <unistd.h>\n")),
              "");
    EXPECT_FALSE(call(0, 1)) << each.body;
    EXPECT_EQ(child.finish().code, 159) << each.body;
    EXPECT_EQ(page->system_call, each.number) << each.body;
  }
}

TEST_F(CpuWorker, GivesUpAdviceThatReachesBeyondItsPages) {
  ASSERT_EQ(
      begin(object("char* page = (char*)((unsigned long)args.y & ~4095ul);\n"
                   "args.y[3] = 5;\n"
                   "*args.calls = madvise(page, 4096, MADV_REMOVE) != 0 && errno == EINVAL &&\n"
                   "    madvise(page, 4096, 21) != 0 && madvise(page, 4096, MADV_HUGEPAGE) == 0;",
                   "#include <cerrno>\n#include <sys/mman.h>\n")),
      "");
  ASSERT_TRUE(call(0, 1));
  EXPECT_EQ(y(0)[3], 5);
}

// It knows how it could leave them, but not where it is, or for whom it works.
TEST_F(CpuWorker, KnowsNothingOfMachineAndUser) {
  const std::string body =
      "Dl_info info{}; struct stat st; struct sysinfo all; *args.calls = 1;\n"
      "const auto named = [](unsigned long kind) { return (const char*)getauxval(kind); };\n"
      "if (dladdr((void*)kernelpro_call, &info) && !strcmp(info.dli_fname, \"/kernel.so\"))\n"
      "  *args.calls *= 2;\n"
      "if (!strchr(program_invocation_name, '/') && !strchr(named(AT_EXECFN), '/'))\n"
      "  *args.calls *= 3;\n"
      "if (getauxval(AT_UID) == 65534 && getuid() == 65534 && getegid() == 65534)\n"
      "  *args.calls *= 5;\n"
      "if (fstat(1, &st) == 0 && st.st_uid == 65534 && st.st_mtime == 0) *args.calls *= 7;\n"
      "if (getppid() == 1 && sysinfo(&all) == 0 && all.procs == 1 && all.uptime == 0)\n"
      "  *args.calls *= 11;\n"
      "bool found = false;\n"
      "for (int fd = 4; fd < 100; ++fd)\n"
      "  found = found || (fstat(fd, &st) == 0 && (st.st_uid != 65534 || st.st_mtime != 0));\n"
      "if (!found) *args.calls *= 13;\n"
      "for (const link_map* map = _r_debug.r_map; map; map = map->l_next)\n"
      "  found = found || strstr(map->l_name, \"kernelpro\");\n"
      "if (!found) *args.calls *= 17;\n";
  ASSERT_EQ(begin(object(body,
                         "#include <cerrno>\n#include <cstring>\n#include <dlfcn.h>\n"
                         "#include <link.h>\n#include <sys/auxv.h>\n#include <sys/stat.h>\n"
                         "#include <sys/sysinfo.h>\n#include <unistd.h>\n"
                         "extern \"C\" void kernelpro_call(const struct Args&);\n")),
            "");
  ASSERT_TRUE(call(0, 1));
  EXPECT_EQ(calls(), 2 * 3 * 5 * 7 * 11 * 13 * 17);
}

// Calls that name a process or thread answer about this process only.
TEST_F(CpuWorker, OtherProcessesDoNotExist) {
  const std::string other = std::to_string(::getpid());
  const std::string body =
      "const int other = " + other +
      "; cpu_set_t set; timespec t; sched_param p;\n"
      "const auto clock_of = [](int pid) { return (clockid_t)((~(unsigned)pid << 3) | 2); };\n"
      "static int lock = other; void* list; unsigned long size; *args.calls = 1;\n"
      "if (sched_getaffinity(other, sizeof set, &set) != 0 && errno == ESRCH) *args.calls *= 2;\n"
      "if (sched_getparam(other, &p) != 0 && errno == ESRCH) *args.calls *= 3;\n"
      "if (clock_gettime(clock_of(other), &t) != 0 && errno == EINVAL) *args.calls *= 5;\n"
      "if (clock_getres(clock_of(other), &t) == clock_getres(clock_of(2000000), &t))\n"
      "  *args.calls *= 7;\n"
      "if (syscall(SYS_futex, &lock, 6, 0, 0, 0, 0) != 0 && errno == ENOSYS) *args.calls *= 11;\n"
      "if (syscall(SYS_get_robust_list, other, &list, &size) != 0 && errno == EPERM)\n"
      "  *args.calls *= 13;\n"
      "if (sched_getscheduler(other) == sched_getscheduler(2000000)) *args.calls *= 17;\n"
      "if (sched_getaffinity(gettid(), sizeof set, &set) == 0 && CPU_COUNT(&set) > 0 &&\n"
      "    sched_getparam(gettid(), &p) == 0 && clock_gettime(CLOCK_MONOTONIC, &t) == 0 &&\n"
      "    clock_gettime(clock_of(getpid()), &t) == 0 &&\n"
      "    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0) *args.calls *= 19;\n";
  ASSERT_EQ(begin(object(body,
                         "#include <cerrno>\n#include <sched.h>\n#include <sys/syscall.h>\n"
                         "#include <time.h>\n#include <unistd.h>\n")),
            "");
  ASSERT_TRUE(call(0, 1));
  EXPECT_EQ(calls(), 2 * 3 * 5 * 7 * 11 * 13 * 17 * 19);
}

TEST_F(CpuWorker, EndsOnAChangedFloatingPointState) {
  const char* changes[] = {"_mm_setcsr(_mm_getcsr() | 0x8000);", "_mm_setcsr(_mm_getcsr() | 0x40);",
                           "std::fesetround(FE_DOWNWARD);", "feenableexcept(FE_DIVBYZERO);",
                           "_mm_add_pi8(_mm_set1_pi8(args.x[0]), _mm_set1_pi8(1)); "
                           "asm volatile(\"movd %0, %%mm0\" : : \"r\"(1));"};
  const char* top = "#include <cfenv>\n#include <mmintrin.h>\n#include <xmmintrin.h>\n";
  for (const char* change : changes) {
    new (page) CpuStatus;
    ASSERT_EQ(begin(object(change, top)), "") << change;
    EXPECT_FALSE(call(0, 1)) << change;
    EXPECT_EQ(child.finish().code, kCpuFloatStateExit) << change;
    EXPECT_EQ(page->float_state, 1) << change;
  }
  new (page) CpuStatus;
  ASSERT_EQ(begin(object("volatile double zero = 0; volatile double infinite = 1 / zero;\n"
                         "std::fesetround(FE_UPWARD); std::fesetround(FE_TONEAREST);",
                         top)),
            "");
  EXPECT_TRUE(call(0, 1)) << "flags are no state to keep";
  new (page) CpuStatus;
  EXPECT_EQ(
      begin(object("", std::string(top) + "static const int early = (_mm_setcsr(0x9fc0), 0);\n")),
      "gone");
  EXPECT_EQ(page->float_state, 1) << "in a constructor";
}

#if defined(__x86_64__)
TEST_F(CpuWorker, EndsOnARegisterThatACalleeMustRestore) {
  std::vector<std::string> changes;
  for (const char* name : {"rbx", "r12", "r13", "r14", "r15"}) {
    changes.push_back(std::string("asm volatile(\"movabs $0x5a5a5a5a5a5a5a5a, %%") + name +
                      "\" ::: \"memory\");");
  }
  for (const std::string& change : changes) {
    new (page) CpuStatus;
    ASSERT_EQ(begin(object(change)), "") << change;
    EXPECT_FALSE(call(0, 1)) << change;
    EXPECT_EQ(child.finish().code, kCpuRegistersExit) << change;
    EXPECT_EQ(page->registers, 1) << change;
  }
  new (page) CpuStatus;
  ASSERT_EQ(begin(object("stack_t none{}; none.ss_flags = SS_DISABLE; sigaltstack(&none, nullptr);",
                         "#include <signal.h>\n")),
            "");
  call(0, 1);  // it is looked at when the clock has stopped
  EXPECT_EQ(child.finish().code, kCpuSignalStateExit);
  EXPECT_EQ(page->signal_state, 1) << "no stack for handlers";
}
#endif

}  // namespace
}  // namespace kernelpro
