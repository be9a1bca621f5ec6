// SPDX-License-Identifier: Apache-2.0
#include "measure/cpu/session.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <utility>

#include "base/clock.h"
#include "base/files.h"
#include "base/process/sandbox.h"
#include "base/text.h"
#include "machine/cpu.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kPage = 4096;
constexpr std::int64_t kOwnMemory = 4LL << 30;    // what a candidate may allocate
constexpr std::int64_t kPerThread = 160LL << 20;  // stack and malloc arena, mostly untouched
constexpr std::int64_t kWorkerItself = 512LL << 20;
constexpr double kLongestStop_s = 10;  // for a worker to obey SIGSTOP; then it is killed
constexpr double kUnseenShare = 0.02;  // of a call's processor time that ended threads may hide
constexpr double kPatience = 8;  // limit on how far a call's time limit grows on a busy machine

template <class T>
std::string bytes_of(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

struct RefusedCall {
  int number;
  const char* rule;
  const char* what;
};
constexpr RefusedCall kRefused[] = {
    {SYS_clone, "no-new-processes", "tried to start a process (clone)"},
#ifdef SYS_fork
    {SYS_fork, "no-new-processes", "tried to start a process (fork)"},
    {SYS_vfork, "no-new-processes", "tried to start a process (vfork)"},
    {SYS_open, "no-file-writes", "tried to open a file for writing (open)"},
    {SYS_creat, "no-file-writes", "tried to create a file (creat)"},
#endif
    {SYS_execve, "no-programs", "tried to run a program (execve)"},
    {SYS_execveat, "no-programs", "tried to run a program (execveat)"},
    {SYS_socket, "no-network", "tried to open a socket (socket)"},
    {SYS_socketpair, "no-network", "tried to open a socket (socketpair)"},
    {SYS_connect, "no-network", "tried to connect (connect)"},
    {SYS_openat, "no-file-writes", "tried to open a file for writing (openat)"},
    {SYS_unlinkat, "no-file-writes", "tried to remove a file (unlinkat)"},
    {SYS_renameat2, "no-file-writes", "tried to rename a file (renameat2)"},
    {SYS_mkdirat, "no-file-writes", "tried to create a folder (mkdirat)"},
    {SYS_memfd_create, "no-file-writes", "tried to create a file in memory (memfd_create)"},
    {SYS_ptrace, "no-other-processes", "tried to trace a process (ptrace)"},
    {SYS_process_vm_readv, "no-other-processes", "tried to read another process's memory"},
    {SYS_process_vm_writev, "no-other-processes", "tried to write another process's memory"},
    {SYS_kill, "no-other-processes", "tried to send a signal (kill)"},
    {SYS_fcntl, "no-other-processes", "tried to have signals sent (fcntl)"},
    {SYS_tgkill, "no-other-processes", "tried to send a signal (tgkill)"},
};

Outcome explain_refused(int number) {
  for (const RefusedCall& call : kRefused) {
    if (call.number == number) {
      return Rejected{call.rule,
                      std::string("the kernel ") + call.what + "; candidates may only compute"};
    }
  }
  return Rejected{"system-calls", "the kernel made system call number " + std::to_string(number) +
                                      ", which candidates may not make"};
}

}  // namespace

CpuSession::StatusPage::~StatusPage() {
  if (at != nullptr) ::munmap(at, kPage);
}

Result<void> CpuSession::map_status() {
  status_.fd = Fd(::memfd_create("kernelpro-status", MFD_CLOEXEC));
  void* page = MAP_FAILED;
  if (status_.fd.valid() && ::ftruncate(status_.fd.get(), kPage) == 0) {
    page = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, status_.fd.get(), 0);
  }
  if (page == MAP_FAILED) {
    return fail(ErrorKind::kEnvironment,
                std::string("cannot create shared memory: ") + std::strerror(errno),
                "free some memory or raise the limit on open files (ulimit -n)");
  }
  status_.at = new (page) CpuStatus;
  return {};
}

std::string CpuSession::setup_frame(const std::string& object) {
  const std::size_t count = buffers_.slots().size();
  CpuSetup setup;
  setup.tensors = static_cast<std::int32_t>(tensors_.size());
  setup.sets = static_cast<std::int32_t>(sets());
  setup.has_workspace = count > sets() * tensors_.size() ? 1 : 0;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  setup.address_space = address_space_;
#endif
  std::string frame = bytes_of(setup);
  for (const CpuSlot& slot : buffers_.slots()) frame += bytes_of(slot);
  return frame + object;
}

Result<CpuSession::Started> CpuSession::start(const SessionSettings& settings, const Binary& binary,
                                              const std::vector<Shaped>& tensors,
                                              const CpuBuffers& buffers, const std::string& phase) {
  std::unique_ptr<CpuSession> session(new CpuSession(tensors, buffers));
  KP_TRY(session->map_status());
  const int threads = read_cpu_info().threads;
  const std::int64_t spare = std::max<std::int64_t>(available_memory_bytes() / 2, 256 << 20);
  const std::int64_t own = std::min(kOwnMemory, spare);
  session->address_space_ = 2 * buffers.total_bytes() + own + kWorkerItself + threads * kPerThread +
                            static_cast<std::int64_t>(buffers.slots().size()) * (3 << 20);
  Command command;
  command.argv = {settings.worker, "cpu"};
  command.cwd = "/";
  command.env = {"OMP_NUM_THREADS=" + std::to_string(threads),
                 "OMP_DYNAMIC=false",
                 "GOMP_SPINCOUNT=20000",
                 "KMP_BLOCKTIME=1",
                 "OMP_PROC_BIND=false",
                 "MALLOC_ARENA_MAX=8",
                 "LC_ALL=C"};
  command.unset = secret_variables();
  command.unset.insert(command.unset.end(),
                       {"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "OMP_THREAD_LIMIT",
                        "OMP_SCHEDULE", "OMP_WAIT_POLICY", "GOMP_CPU_AFFINITY"});
  command.limits.output_kept = 16 << 10;
  command.limits.output_killed = 4 << 20;
  command.limits.memory_bytes = buffers.total_bytes() + own + (256 << 20);
  session->limits_ = command.limits;
  KP_ASSIGN(session->child_, Child::start(command));
  const bool sent =
      session->child_.send(session->setup_frame(binary.shared_object),
                           {session->status_.fd.get(), buffers.inputs_fd(), buffers.outputs_fd()});
  std::optional<Frame> frame;
  if (sent) frame = session->child_.receive(settings.load_timeout_s);
  if (!frame) return Started(session->explain(settings.load_timeout_s, phase));
  CpuReady ready;
  const std::size_t addresses = session->sets() * tensors.size() + 1;
  const std::size_t expected = sizeof ready + addresses * sizeof(std::uint64_t);
  if (frame->bytes.size() >= sizeof ready) std::memcpy(&ready, frame->bytes.data(), sizeof ready);
  ready.problem[sizeof ready.problem - 1] = '\0';
  if (ready.ok == 0) {
    const std::string problem = ready.problem[0] != '\0' ? ready.problem : "an unknown reason";
    if (problem.starts_with("the shared object")) return Started(Crashed{problem, ""});
    return fail(ErrorKind::kEnvironment, "the worker process could not start: " + problem,
                "run `kernelpro doctor` to see what this machine allows");
  }
  if (frame->bytes.size() != expected) return Started(Crashed{"sent an unexpected message", ""});
  session->addresses_.resize(addresses);
  std::memcpy(session->addresses_.data(), frame->bytes.data() + sizeof ready,
              expected - sizeof ready);
  return Started(std::move(session));
}

// Killed without waiting: a healthy worker would otherwise be given time to exit.
CpuSession::~CpuSession() { child_.kill(); }

namespace {

// Ends our thread's wait for a worker: a timer that interrupts waitid every second. The handler
// does nothing, and only the thread that armed the timer is interrupted.
class Alarm {
 public:
  Alarm() {
    static const bool handled = [] {
      struct sigaction action {};
      action.sa_handler = [](int) {};
      return ::sigaction(kSignal(), &action, nullptr) == 0;
    }();
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = kSignal();
    event._sigev_un._tid = static_cast<pid_t>(::syscall(SYS_gettid));
    const itimerspec every_second{{1, 0}, {1, 0}};
    armed_ = handled && ::timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0 &&
             ::timer_settime(timer_, 0, &every_second, nullptr) == 0;
  }
  ~Alarm() {
    if (armed_) ::timer_delete(timer_);
  }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

 private:
  static int kSignal() { return SIGRTMIN + 6; }
  timer_t timer_{};
  bool armed_ = false;
};

}  // namespace

void CpuSession::pause() {
  if (child_.pid() <= 0 || ::kill(child_.pid(), SIGSTOP) != 0) return;
  const auto stopped = [&](int more) {
    siginfo_t info{};
    // An exit counts as well, and stays to be reaped.
    return ::waitid(P_PID, static_cast<id_t>(child_.pid()), &info,
                    WSTOPPED | WEXITED | WNOWAIT | more);
  };
  const Alarm alarm;
  const double end = real_clock().now_s() + kLongestStop_s;
  while (stopped(0) != 0 && errno == EINTR) {
    if (real_clock().now_s() < end) continue;
    child_.kill();
    return;
  }
}

void CpuSession::go_on() {
  if (child_.pid() > 0) ::kill(child_.pid(), SIGCONT);
}

void CpuSession::free_threads() {
  for (const Placed& thread : placed_) {
    static_cast<void>(::sched_setaffinity(thread.id, sizeof thread.allowed, &thread.allowed));
  }
  placed_.clear();
}

void CpuSession::scatter(std::uint64_t seed) {
  free_threads();
  const std::vector<std::string> names =
      list_dir("/proc/" + std::to_string(child_.pid()) + "/task");
  std::uint64_t next = seed;
  bool crowded = false;
  for (const std::string& name : names) {
    Placed thread;
    thread.id = static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10));
    if (::sched_getaffinity(thread.id, sizeof thread.allowed, &thread.allowed) != 0) continue;
    const int cpus = CPU_COUNT(&thread.allowed);
    if (cpus < 2) continue;
    crowded = crowded || names.size() > static_cast<std::size_t>(cpus);
    std::uint64_t left = next++ % static_cast<std::uint64_t>(cpus);
    std::size_t cpu = 0;
    while (!CPU_ISSET(cpu, &thread.allowed) || left-- > 0) ++cpu;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (::sched_setaffinity(thread.id, sizeof one, &one) == 0) placed_.push_back(thread);
  }
  if (placed_.empty()) return;
  go_on();  // a stopped thread moves when it wakes up
  pause();
  if (crowded || names.size() == 1) free_threads();
}

double CpuSession::cpu_ns() const {
  clockid_t clock = 0;
  timespec time{};
  if (child_.pid() <= 0 || ::clock_getcpuclockid(child_.pid(), &clock) != 0 ||
      ::clock_gettime(clock, &time) != 0) {
    return 0;
  }
  return 1e9 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec);
}

// Reads "cpu_ns waited_ns turns" of every living thread.
CpuSession::ThreadTimes CpuSession::thread_times() const {
  ThreadTimes times;
  const std::string folder = "/proc/" + std::to_string(child_.pid()) + "/task/";
  for (const std::string& name : list_dir(folder)) {
    std::ifstream file(folder + name + "/schedstat");
    ThreadTime time;
    if (!(file >> time.cpu_ns >> time.waited_ns)) continue;
    times.emplace(static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10)), time);
  }
  return times;
}

double CpuSession::waited_since(const ThreadTimes& before, double cpu_ns) const {
  double computed = 0, waited = 0;
  for (const auto& [id, time] : thread_times()) {
    const auto then = before.find(id);
    const ThreadTime from = then == before.end() ? ThreadTime() : then->second;
    computed += time.cpu_ns - from.cpu_ns;
    waited += time.waited_ns - from.waited_ns;
  }
  const bool complete = computed > 0 && computed > (1 - kUnseenShare) * cpu_ns;
  return complete ? waited : INFINITY;
}

// Waits for the worker's next answer, whose content does not matter.
std::variant<Called, Outcome> CpuSession::answer(double timeout_s, const std::string& phase) {
  double given = timeout_s;
  const auto patience = [&] {
    const double foreign = std::min(load_.since_begin({child_.pid()}).foreign, 1 - 1 / kPatience);
    const double more = foreign > kBusyShare ? timeout_s / (1 - foreign) - given : 0;
    given += std::max(0.0, more);
    return std::max(0.0, more);
  };
  const std::optional<Frame> frame = child_.receive(timeout_s, patience);
  if (!frame) return explain(timeout_s, phase);
  if (frame->bytes.size() != sizeof(CpuDone)) {
    return Rejected{"own-messages", "the kernel wrote to the worker's channel"};
  }
  return Called{};
}

std::variant<Called, Outcome> CpuSession::call(const CpuCall& order, double timeout_s,
                                               const std::string& phase) {
  load_.begin();
  const double computed = cpu_ns();
  const std::int64_t start = real_clock().now_ns();
  if (!child_.send(bytes_of(order))) return explain(timeout_s, phase);
  std::variant<Called, Outcome> answered = answer(timeout_s, phase);
  if (auto* called = std::get_if<Called>(&answered)) {
    called->wall_ns = static_cast<double>(real_clock().now_ns() - start);
    called->cpu_ns = cpu_ns() - computed;
  }
  return answered;
}

std::variant<Called, Outcome> CpuSession::timed_call(const CpuCall& order, double timeout_s,
                                                     const std::string& phase) {
  load_.begin();
  const ThreadTimes threads = thread_times();
  const double computed = cpu_ns();
  if (!child_.send(bytes_of(order))) return explain(timeout_s, phase);
  const std::int64_t start = real_clock().now_ns();
  go_on();
  std::variant<Called, Outcome> answered = answer(timeout_s, phase);
  if (auto* called = std::get_if<Called>(&answered)) {
    pause();
    called->wall_ns = static_cast<double>(real_clock().now_ns() - start);
    called->cpu_ns = cpu_ns() - computed;
    called->foreign = load_.since_begin({child_.pid()}).foreign;
    called->waited_ns = waited_since(threads, called->cpu_ns);
  }
  return answered;
}

bool CpuSession::near_memory_limit(const Exit& exit) const {
  const std::int64_t mapped = status_.at->mapped_pages * kPage;
  return contains(exit.output, "bad_alloc") || mapped > address_space_ - (1LL << 30) ||
         mapped > address_space_ / 10 * 9;
}

Outcome CpuSession::explain(double timeout_s, const std::string& phase) {
  if (child_.pid() > 0) go_on();
  const Exit exit = child_.finish();
  const int refused = status_.at->system_call;
  if (refused >= 0) return explain_refused(refused);
  switch (exit.kind) {
    case Exit::Kind::kTimedOut:
      return TimedOut{timeout_s, phase};
    case Exit::Kind::kFlooded:
    case Exit::Kind::kTooManyProcesses:
      return Crashed{"the kernel " + exit.describe(limits_) + " while " + phase,
                     clip(exit.output, 1024)};
    case Exit::Kind::kOutOfMemory:
      return Crashed{"the kernel used more than the memory limit of " +
                         human_bytes(static_cast<double>(limits_.memory_bytes)) + " while " + phase,
                     clip(exit.output, 2048)};
    case Exit::Kind::kSignalled:
      return explain_signal(exit, phase);
    case Exit::Kind::kExited:
      return Crashed{"the kernel ended its process with exit status " + std::to_string(exit.code) +
                         " instead of returning, while " + phase,
                     clip(exit.output, 2048)};
  }
  return Crashed{"the worker ended", exit.output};
}

Outcome CpuSession::explain_signal(const Exit& exit, const std::string& phase) const {
  if (exit.code == SIGXFSZ) {
    return Rejected{"no-file-writes", "the kernel tried to write to a file"};
  }
  if (exit.code == SIGSYS) {  // the report itself was blocked
    return Rejected{"system-calls",
                    "the kernel made a system call that candidates may not make, with signals "
                    "blocked, as system and posix_spawn do to start a process"};
  }
  const std::string output = clip(exit.output, 2048);
  // The system-call filter keeps a kernel from sending these to itself.
  if (exit.from_outside()) {
    return Crashed{"the worker process " + exit.describe(limits_) + ", while " + phase, output,
                   Crashed::By::kOutside};
  }
  std::string reason = "the kernel was ended by signal " + std::to_string(exit.code) + " (" +
                       signal_name(exit.code) + ")";
  if (exit.code == SIGABRT && contains(output, "terminate called")) {
    reason = "the kernel threw an exception out of launch";
    const std::size_t type = output.find("instance of '");
    if (type != std::string::npos) {
      const std::size_t from = type + 13;
      reason += " (" + output.substr(from, output.find('\'', from) - from) + ")";
    }
  }
  if (near_memory_limit(exit)) {
    return Crashed{reason + " at the memory limit of " +
                       human_bytes(static_cast<double>(address_space_)) +
                       " of address space, while " + phase,
                   output};
  }
  if ((exit.code == SIGSEGV || exit.code == SIGBUS) && status_.at->signal == exit.code) {
    reason += ": it " + explain_address(status_.at->address, status_.at->is_write != 0);
  }
  return Crashed{reason + ", while " + phase, output};
}

std::string CpuSession::buffer_name(std::size_t slot) const {
  return is_workspace(slot) ? "the workspace"
                            : "tensor " + tensors_[slot % tensors_.size()].tensor->name;
}

std::string CpuSession::explain_address(std::uint64_t address, bool is_write) const {
  constexpr std::int64_t kNear = 16 << 20;  // a stray access this far off is still attributed
  const char* verb = is_write ? "wrote" : "read";
  if (address < 65536) {
    return std::string(verb) + (is_write ? " to" : " from") + " a null pointer";
  }
  std::size_t best = addresses_.size();
  std::int64_t best_distance = kNear;
  for (std::size_t i = 0; i < addresses_.size(); ++i) {
    if (addresses_[i] == 0 || i >= buffers_.slots().size()) continue;
    const std::int64_t at = static_cast<std::int64_t>(address - addresses_[i]);
    const std::int64_t bytes = buffers_.slots()[i].bytes;
    if (at >= 0 && at < bytes) {
      return std::string(verb) + " " + (is_write ? "to input " : "") + buffer_name(i) +
             (is_write ? ", which is read-only" : "");
    }
    const std::int64_t distance = at < 0 ? -at : at - bytes;
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = i;
  }
  if (best == addresses_.size()) {
    return std::string(verb) + " at an address that belongs to no tensor";
  }
  const Shaped& tensor = tensors_[best % tensors_.size()];
  const std::int64_t element =
      is_workspace(best) ? 1 : tensor.bytes / std::max<std::int64_t>(1, tensor.elements);
  return describe_stray(buffer_name(best), buffers_.slots()[best].bytes, element,
                        static_cast<std::int64_t>(address - addresses_[best]), is_write);
}

std::string describe_stray(const std::string& name, std::int64_t bytes, std::int64_t element_bytes,
                           std::int64_t at, bool is_write) {
  const std::string verb = is_write ? "wrote" : "read";
  if (at < 0) {
    const std::int64_t index = (at - element_bytes + 1) / element_bytes;
    return verb + " before the start of " + name + " (element " + std::to_string(index) + ")";
  }
  const std::int64_t index = at / element_bytes;
  return verb + " past the end of " + name + " (element " + std::to_string(index) + "; it has " +
         std::to_string(bytes / element_bytes) + ")";
}

}  // namespace kernelpro
