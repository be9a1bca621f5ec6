// SPDX-License-Identifier: Apache-2.0
#include "measure/cpu/session.h"

#include <fcntl.h>
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
#include <initializer_list>
#include <utility>

#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include "core/plan/worker_role.h"
#include "core/task/key.h"
#include "machine/cpu.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kPage = 4096;
constexpr std::int64_t kOwnMemory = 4LL << 30;    // what a candidate may allocate
constexpr std::int64_t kPerThread = 160LL << 20;  // stack and malloc arena, mostly untouched
constexpr std::int64_t kWorkerItself = 512LL << 20;
constexpr std::size_t kMostThreads = 4096;
constexpr double kAtOnce_s = 0.1;      // to receive what has been sent
constexpr double kLongestStop_s = 10;  // for a worker to obey SIGSTOP; then it is killed
constexpr double kLateNs = 2e5;        // of a processor's time between SIGSTOP and the stop: usual
constexpr double kMostLateNs = 5e8;    // ... of all together; more is not by chance
constexpr double kFreeLoad_s = 2;      // a load may take this long without being charged ...
constexpr double kFreeCall_s = 0.05;   // ... a call this much more than its work ...
constexpr double kFreeStop_s = 0.2;    // ... and a stop this long (Patience)
constexpr double kSlower = 8;  // times the quickest call that any other on given values may take
constexpr double kSlowerProbe = 100;   // ... and one on a probe's
constexpr double kUnseenShare = 0.02;  // of a call's processor time that ended threads may hide
constexpr double kNothingNs = 1e3;     // other threads' work, where there were none
constexpr std::uint64_t kWatchedWords = 8;  // of each output, when the answer arrives
constexpr std::uint64_t kOtherWords = 8;    // of each output of the other sets
constexpr double kMostLonger = 8;           // times a call's time limit, on a busy machine
// Of our environment nothing else is passed on: a candidate can print what it gets.
constexpr std::initializer_list<const char*> kSanitizerOptions = {"ASAN_OPTIONS", "TSAN_OPTIONS",
                                                                  "UBSAN_OPTIONS", "LSAN_OPTIONS"};

template <class T>
std::string bytes_of(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

pid_t id_of(const std::string& thread_folder) {
  return static_cast<pid_t>(std::strtol(thread_folder.c_str(), nullptr, 10));
}

// All zero when it is too short.
CpuReady ready_of(const Frame& frame) {
  CpuReady ready;
  if (frame.bytes.size() >= sizeof ready) std::memcpy(&ready, frame.bytes.data(), sizeof ready);
  ready.problem[sizeof ready.problem - 1] = '\0';
  return ready;
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

std::string CpuSession::setup_frame() const {
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
  return frame;
}

Result<CpuSession::Started> CpuSession::start(const SessionSettings& settings, const Binary& binary,
                                              const std::vector<Shaped>& tensors, CpuBuffers memory,
                                              const std::string& phase) {
  std::unique_ptr<CpuSession> session(new CpuSession(tensors, std::move(memory)));
  const CpuBuffers& buffers = session->buffers_;
  KP_TRY(session->map_status());
  const int threads = read_cpu_info().threads;
  const std::int64_t spare = std::max<std::int64_t>(available_memory_bytes() / 2, 256 << 20);
  const std::int64_t own = std::min(kOwnMemory, spare);
  session->address_space_ = 2 * buffers.total_bytes() + own + kWorkerItself + threads * kPerThread +
                            static_cast<std::int64_t>(buffers.slots().size()) * (3 << 20);
  Command command;
  command.argv = {settings.worker, worker_role_name(WorkerRole::kCpu)};
  command.cwd = "/";
  command.keep = {kSanitizerOptions.begin(), kSanitizerOptions.end()};
  command.env = {"OMP_NUM_THREADS=" + std::to_string(threads),
                 "OMP_DYNAMIC=false",
                 "GOMP_SPINCOUNT=20000",
                 "KMP_BLOCKTIME=1",
                 "OMP_PROC_BIND=false",
                 "MALLOC_ARENA_MAX=8",
                 "GLIBC_TUNABLES=glibc.pthread.rseq=0",  // cpu_gate.h
                 "LC_ALL=C"};
  const std::size_t addresses = session->sets() * tensors.size() + 1;
  const std::size_t expected = sizeof(CpuReady) + addresses * sizeof(std::uint64_t);
  command.limits.frame_bytes = std::max(expected, sizeof(CpuLoaded));
  command.limits.frame_fds = 0;
  command.limits.output_kept = 16 << 10;
  command.limits.output_killed = 4 << 20;
  command.limits.memory_bytes = buffers.total_bytes() + own + (256 << 20);
  session->limits_ = command.limits;
  std::vector<int> descriptors = {session->status_.fd.get(), buffers.inputs_fd(),
                                  buffers.outputs_fd()};
  Fd object;
  if (!binary.shared_object.empty()) {
    object = Fd(::open(binary.shared_object.c_str(), O_RDONLY | O_CLOEXEC));
    if (!object.valid()) {
      return fail(ErrorKind::kEnvironment,
                  "cannot open " + binary.shared_object + ": " + std::strerror(errno),
                  "run the command again: the build cache was changed meanwhile");
    }
    descriptors.push_back(object.get());
  }
  KP_ASSIGN(session->child_, Child::start(command));
  const bool sent = session->child_.send(session->setup_frame(), descriptors);
  std::optional<Frame> frame;
  if (sent) frame = session->child_.receive(settings.load_timeout_s);
  if (!frame) return Started(session->explain(settings.load_timeout_s, phase));
  // Until here no candidate code has run, so this can be believed.
  const CpuReady ready = ready_of(*frame);
  if (ready.ok == 0 || frame->bytes.size() != expected) {
    return fail(ErrorKind::kEnvironment,
                "the worker process could not start: " +
                    (ready.problem[0] != '\0' ? std::string(ready.problem) : "an unknown reason"),
                "run `kernelpro doctor` to see what this machine allows");
  }
  session->addresses_.resize(addresses);
  std::memcpy(session->addresses_.data(), frame->bytes.data() + sizeof ready,
              expected - sizeof ready);
  session->patience_ = settings.patience;
  const double begun = real_clock().now_s();
  frame = session->child_.receive(settings.load_timeout_s);
  if (!frame) return Started(session->explain(settings.load_timeout_s, phase));
  if (session->patience_) {
    const double loading = real_clock().now_s() - begun;
    session->patience_->wasted_s += std::max(0.0, loading - kFreeLoad_s);
  }
  const CpuLoaded loaded = ready_of(*frame);
  if (frame->bytes.size() != sizeof loaded || loaded.ok == 0) {
    const std::string problem = printable(loaded.problem);
    return Started(Crashed{problem.starts_with("the shared object")
                               ? problem
                               : "the kernel wrote to the worker's channel while it was loaded",
                           ""});
  }
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

std::string CpuSession::task_folder() const {
  return "/proc/" + std::to_string(child_.pid()) + "/task/";
}

void CpuSession::pause() {
  late_ = {};
  if (child_.pid() <= 0 || ::kill(child_.pid(), SIGSTOP) != 0) return;
  const double then_cpu_ns = cpu_ns();
  const std::int64_t then_ns = real_clock().now_ns();
  wait_until_stopped();
  late_.wall_ns = static_cast<double>(real_clock().now_ns() - then_ns);
  if (patience_) patience_->wasted_s += std::max(0.0, late_.wall_ns * 1e-9 - kFreeStop_s);
  late_.cpu_ns = cpu_ns() - then_cpu_ns;
}

void CpuSession::wait_until_stopped() {
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
    would_not_stop_ = true;
    child_.kill();
    return;
  }
}

void CpuSession::go_on() {
  if (child_.pid() > 0) ::kill(child_.pid(), SIGCONT);
}

void CpuSession::free_threads() {
  std::ranges::for_each(bound_, free_thread);
  bound_.clear();
}

void CpuSession::scatter(std::uint64_t seed) {
  free_threads();
  const std::vector<std::string> names = list_dir(task_folder());
  seed_ = seed;
  scattered_ = names.size();
  std::uint64_t next = seed;
  bool crowded = false;
  for (const std::string& name : names) {
    const std::optional<BoundThread> bound = bind_thread(id_of(name), next++);
    if (!bound) continue;
    crowded = crowded || names.size() > static_cast<std::size_t>(CPU_COUNT(&bound->allowed));
    bound_.push_back(*bound);
  }
  if (bound_.empty()) return;
  go_on();  // a stopped thread moves when it wakes up
  pause();
  if (crowded || names.size() == 1) free_threads();
}

void CpuSession::settle() {
  const std::size_t threads = list_dir(task_folder()).size();
  if (threads != scattered_) scatter(seed_);
  if (threads != 1 || !bound_.empty()) return;
  const ThreadTimes times = thread_times();
  const auto first = times.find(child_.pid());
  if (first == times.end() || cpu_ns() - first->second.cpu_ns > kNothingNs) return;
  if (const std::optional<BoundThread> bound = hold_thread(child_.pid())) bound_.push_back(*bound);
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

double CpuSession::busiest_thread_ns() const {
  double most = 0;
  for (const auto& [id, time] : thread_times()) most = std::max(most, time.cpu_ns);
  return most > 0 ? most : cpu_ns();
}

// Reads "cpu_ns waited_ns turns" of every living thread.
CpuSession::ThreadTimes CpuSession::thread_times() const {
  ThreadTimes times;
  const std::string folder = task_folder();
  for (const std::string& name : list_dir(folder)) {
    std::ifstream file(folder + name + "/schedstat");
    ThreadTime time;
    if (!(file >> time.cpu_ns >> time.waited_ns)) continue;
    times.emplace(id_of(name), time);
  }
  return times;
}

double CpuSession::waited_since(const ThreadTimes& now, double cpu_ns) const {
  double computed = 0, waited = 0;
  for (const auto& [id, time] : now) {
    const auto then = threads_then_.find(id);
    const ThreadTime from = then == threads_then_.end() ? ThreadTime() : then->second;
    computed += time.cpu_ns - from.cpu_ns;
    waited += time.waited_ns - from.waited_ns;
  }
  const bool complete = computed > 0 && computed > (1 - kUnseenShare) * cpu_ns;
  return complete ? waited : INFINITY;
}

void CpuSession::begin_turn() {
  load_.begin();
  threads_then_ = thread_times();
  cpu_then_ns_ = cpu_ns();
}

TurnUse CpuSession::end_turn() const {
  TurnUse use;
  const ThreadTimes now = thread_times();
  use.cpu_ns = cpu_ns() - cpu_then_ns_;
  use.foreign = load_.since_begin({child_.pid()}).foreign;
  use.waited_ns = waited_since(now, use.cpu_ns);
  const auto first = now.find(child_.pid()), then = threads_then_.find(child_.pid());
  use.others_cpu_ns = first == now.end() || then == threads_then_.end()
                          ? INFINITY
                          : use.cpu_ns - (first->second.cpu_ns - then->second.cpu_ns);
  return use;
}

// Waits for the worker's next answer, whose content does not matter.
std::optional<Outcome> CpuSession::answer(double timeout_s, const std::string& phase) {
  double given = timeout_s;
  const auto patience = [&] {
    const double foreign = std::min(load_.since_begin({child_.pid()}).foreign, 1 - 1 / kMostLonger);
    const double more = foreign > kBusyShare ? timeout_s / (1 - foreign) - given : 0;
    given += std::max(0.0, more);
    return std::max(0.0, more);
  };
  const std::optional<Frame> frame = child_.receive(timeout_s, patience);
  if (!frame) return explain(timeout_s, phase);
  if (frame->bytes.size() != sizeof(CpuDone)) {
    return Rejected{"own-messages", "the kernel wrote to the worker's channel"};
  }
  return std::nullopt;
}

// An answer that comes before its order would stop the clock at once.
std::optional<Outcome> CpuSession::order(const CpuCall& wanted, double timeout_s,
                                         const std::string& phase) {
  if (child_.has_spoken()) {
    if (!child_.receive(kAtOnce_s)) return explain(timeout_s, phase);  // it has ended
    return Rejected{"own-messages", "the kernel answered on the worker's channel before its order"};
  }
  if (!child_.send(bytes_of(wanted))) return explain(timeout_s, phase);
  return std::nullopt;
}

std::variant<Called, Outcome> CpuSession::call(const CpuCall& wanted, double timeout_s,
                                               const std::string& phase) {
  load_.begin();
  const std::int64_t start = real_clock().now_ns();
  if (auto outcome = order(wanted, timeout_s, phase)) return *outcome;
  if (auto outcome = answer(timeout_s, phase)) return *outcome;
  return Called{static_cast<double>(real_clock().now_ns() - start)};
}

// How long the worker's threads were ready to run and did not, since begin_turn, added up: more
// than any of them. Where the system does not tell, without end beside other work.
double CpuSession::waited_s() const {
  const double waited = waited_since(thread_times(), cpu_ns() - cpu_then_ns_) * 1e-9;
  if (std::isfinite(waited)) return waited;
  const double foreign = load_.since_begin({child_.pid()}).foreign;
  return foreign > kBusyShare ? INFINITY : 0;
}

std::optional<Outcome> CpuSession::charge_call(const CpuCall& wanted, double seconds, Values values,
                                               const std::string& phase) {
  if (!patience_) return std::nullopt;
  const double calls = std::max(1, wanted.sets * wanted.repeats);
  if (values == Values::kGiven) patience_->call_s = std::min(patience_->call_s, seconds / calls);
  const double slower = values == Values::kGiven ? kSlower : kSlowerProbe;
  const double more = seconds - kFreeCall_s - slower * calls * patience_->call_s;
  if (more > 0) patience_->wasted_s += std::max(0.0, more - waited_s());
  if (!patience_->spent()) return std::nullopt;
  return TimedOut{patience_->limit_s,
                  phase +
                      ", wasted over all loads, calls and stops: some of its calls take far "
                      "longer than its quickest"};
}

std::vector<CpuSession::Watched> CpuSession::watch(std::size_t set, std::uint64_t words,
                                                   std::uint64_t secret) const {
  std::vector<Watched> watched;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const std::size_t slot = set * tensors_.size() + i;
    const CpuSlot& s = buffers_.slots()[slot];
    if (s.writable == 0 || s.bytes == 0) continue;
    const std::size_t bytes = std::min<std::size_t>(8, static_cast<std::size_t>(s.bytes));
    const std::uint64_t places = static_cast<std::uint64_t>(s.bytes) - bytes + 1;
    for (std::uint64_t k = 0; k < words; ++k) {
      const std::uint64_t at = kp::mix64(secret + words * slot + k) % places;
      watched.push_back({buffers_.data(slot) + at, bytes, 0});
    }
  }
  return watched;
}

std::vector<CpuSession::Watched> CpuSession::watch_outputs(const CpuCall& wanted) const {
  if (wanted.sets != 1) return {};
  return watch(static_cast<std::size_t>(wanted.first), kWatchedWords, fresh_secret());
}

// Snapshots the outputs of all other sets. A task of one tensor has no inputs, and `sets` would
// count its workspace.
std::vector<CpuSession::Watched> CpuSession::watch_others(const CpuCall& wanted) const {
  std::vector<Watched> watched;
  if (tensors_.size() == 1) return watched;
  const std::uint64_t secret = fresh_secret();
  const auto first = static_cast<std::size_t>(wanted.first);
  for (std::size_t set = 0; set < sets(); ++set) {
    if (set >= first && set < first + static_cast<std::size_t>(wanted.sets)) continue;
    for (const Watched& word : watch(set, kOtherWords, secret)) watched.push_back(word);
  }
  for (Watched& word : watched) word.note();
  return watched;
}

// The clock runs until every thread is seen to have stopped, if they computed meanwhile. Threads
// that spin for a while after a call do so for less.
std::optional<Outcome> CpuSession::count_late_work(Called* called) const {
  if (late_.cpu_ns > kMostLateNs) {
    return Rejected{"late-work", "the kernel's threads went on computing for " +
                                     human_seconds(late_.cpu_ns * 1e-9) +
                                     " after it had returned, and could not be stopped"};
  }
  if (late_.cpu_ns > kLateNs * threads_) called->wall_ns += late_.wall_ns;
  return std::nullopt;
}

std::variant<Called, Outcome> CpuSession::timed_call(const CpuCall& wanted, double timeout_s,
                                                     const std::string& phase, Values values) {
  std::vector<Watched> outputs = watch_outputs(wanted);
  const std::vector<Watched> others = watch_others(wanted);
  const RunBeside beside(child_.pid());
  if (auto outcome = order(wanted, timeout_s, phase)) return *outcome;
  const std::int64_t start = real_clock().now_ns();
  go_on();
  if (auto outcome = answer(timeout_s, phase)) return *outcome;
  Called called{static_cast<double>(real_clock().now_ns() - start)};
  for (Watched& word : outputs) word.note();
  pause();
  if (would_not_stop_) return explain(timeout_s, phase);
  if (auto outcome = count_late_work(&called)) return *outcome;
  if (!std::ranges::all_of(outputs, &Watched::same)) {
    return Rejected{"late-work", "the kernel still changed its results after it had returned"};
  }
  if (!std::ranges::all_of(others, &Watched::same)) {
    return Rejected{"out-of-bounds", "the kernel wrote to an output of another call"};
  }
  if (const std::size_t threads = list_dir(task_folder()).size(); threads > kMostThreads) {
    return Crashed{"the kernel keeps " + std::to_string(threads) + " threads; at most " +
                       std::to_string(kMostThreads) + " may remain, while " + phase,
                   ""};
  }
  if (auto late = charge_call(wanted, called.wall_ns * 1e-9, values, phase)) return *late;
  return called;
}

}  // namespace kernelpro
