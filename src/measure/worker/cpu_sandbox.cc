// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/cpu_sandbox.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <vector>

#include "base/files.h"
#include "base/process/command.h"
#include "base/process/sandbox.h"
#include "base/process/seccomp.h"
#include "base/text.h"
#include "measure/worker/cpu_gate.h"

namespace kernelpro {

namespace {

CpuStatus* g_status = nullptr;

// Report that the process leaves when it dies; only async-signal-safe calls.

// Open from before the sandbox; -1 without /proc.
int g_statm = -1;

std::int64_t mapped_pages() {
  char text[64];
  const ssize_t n = ::pread(g_statm, text, sizeof text - 1, 0);
  std::int64_t pages = 0;
  for (ssize_t i = 0; i < n && text[i] >= '0' && text[i] <= '9'; ++i) {
    pages = pages * 10 + (text[i] - '0');
  }
  return pages;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  int none = 0;
  if (g_status->signal.compare_exchange_strong(none, signal)) {
    g_status->address = reinterpret_cast<std::uint64_t>(info->si_addr);
#if defined(__x86_64__)
    const auto* machine = static_cast<const ucontext_t*>(context);
    g_status->is_write = (machine->uc_mcontext.gregs[REG_ERR] & 2) != 0 ? 1 : 0;
#else
    static_cast<void>(context);
#endif
    g_status->mapped_pages = mapped_pages();
  }
  // Its default action is back: returning to the fault, or this, ends the process with its signal.
  if (signal == SIGABRT) ::raise(SIGABRT);
}

// Files that a candidate may open: descriptors from before the sandbox. The kernel refuses every
// open; this process then gives itself a copy of one of these. No other name exists for it.
struct Served {
  const char* path;
  int file;
  off_t bytes;
  mode_t kind;
};
constexpr int kMostServed = 8;
Served g_served[kMostServed];
int g_served_count = 0;
// By descriptor: 1 + the place in g_served of what it was opened for; 0: nothing.
constexpr int kMostFiles = 1024;
std::atomic<unsigned char> g_opened_for[kMostFiles];

void serve(const char* path, int file) {
  struct stat st {};
  if (file < 0 || ::fstat(file, &st) != 0) return;
  KP_ASSERT(g_served_count < kMostServed);
  g_served[g_served_count++] = {path, file, st.st_size, st.st_mode & S_IFMT};
  if (file < kMostFiles) g_opened_for[file] = static_cast<unsigned char>(g_served_count);
}

void serve(const char* path) { serve(path, ::open(path, O_RDONLY | O_CLOEXEC)); }

// What calls about the machine answer, without what others do on it.
struct sysinfo g_machine;

// The following run in the handler: only async-signal-safe calls that the filter allows.

constexpr int kWriting = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;

long open_served(const char* path) {
  for (int i = 0; i < g_served_count; ++i) {
    if (std::strcmp(g_served[i].path, path) != 0) continue;
    const int file = ::fcntl(g_served[i].file, F_DUPFD_CLOEXEC, 0);
    if (file < 0) return -errno;
    ::lseek(file, 0, SEEK_SET);
    if (file < kMostFiles) g_opened_for[file] = static_cast<unsigned char>(1 + i);
    return file;
  }
  return -ENOENT;
}

std::optional<long> open_file(const char* path, long flags) {
  if ((flags & kWriting) == 0) return open_served(path);
  // So the C library names a thread, or fails to.
  constexpr char kThreads[] = "/proc/self/task/";
  if (std::strncmp(path, kThreads, sizeof kThreads - 1) == 0) return -EACCES;
  return std::nullopt;
}

// What a descriptor is, but not whose, on which disk, or since when. Nothing else may be asked
// about.
long stat_descriptor(int file, struct stat* to) {
  if (::fcntl(file, F_GETFD) < 0) return -EBADF;
  *to = {};
  to->st_nlink = 1;
  to->st_blksize = 4096;
  to->st_uid = to->st_gid = kNobody;
  const int opened_for = file < kMostFiles ? g_opened_for[file].load() : 0;
  to->st_ino = static_cast<ino_t>(1 + opened_for);
  if (opened_for == 0) {
    to->st_mode = S_IFIFO | 0600;
    return 0;
  }
  const Served& served = g_served[opened_for - 1];
  to->st_mode = served.kind | 0444;
  to->st_size = served.bytes;
  to->st_blocks = (served.bytes + 511) / 512;
  return 0;
}

// Whether a number is that of a thread of this process; 0 stands for the caller.
bool own_thread(long id) {
  return id == 0 || ::syscall(SYS_tgkill, ::getpid(), static_cast<pid_t>(id), 0) == 0;
}

// Scheduling of a thread by its number: all have the usual class and may use the same processors.
long scheduling(int number, long thread, long a, long b) {
  if (!own_thread(thread)) return -ESRCH;
  if (number == SYS_sched_getscheduler) return SCHED_OTHER;
  if (number == SYS_sched_getparam) {
    *reinterpret_cast<sched_param*>(a) = {};
    return 0;
  }
  const long bytes = ::syscall(SYS_sched_getaffinity, 0, a, b);
  return bytes >= 0 ? bytes : -errno;
}

#if defined(__x86_64__)
constexpr int kArguments[] = {REG_RDI, REG_RSI, REG_RDX, REG_R10};
greg_t& machine_register(ucontext_t* context, int index) {
  return context->uc_mcontext.gregs[index];
}
long argument(ucontext_t* context, int i) { return machine_register(context, kArguments[i]); }
void answer(ucontext_t* context, long result) { machine_register(context, REG_RAX) = result; }
#else
long argument(ucontext_t* context, int i) {
  return static_cast<long>(context->uc_mcontext.regs[i]);
}
void answer(ucontext_t* context, long result) {
  context->uc_mcontext.regs[0] = static_cast<unsigned long long>(result);
}
#endif

// The result of a call that the kernel left to us, or nullopt if it is not allowed.
std::optional<long> serve_call(int number, ucontext_t* context) {
  const auto text = [&](int i) { return reinterpret_cast<const char*>(argument(context, i)); };
  const auto descriptor = static_cast<int>(argument(context, 0));
  switch (number) {
    case SYS_newfstatat:
      if (text(1) == nullptr || *text(1) != '\0') return -ENOENT;
      return stat_descriptor(descriptor, reinterpret_cast<struct stat*>(argument(context, 2)));
    case SYS_fstat:
      return stat_descriptor(descriptor, reinterpret_cast<struct stat*>(argument(context, 1)));
    case SYS_getuid:
    case SYS_geteuid:
    case SYS_getgid:
    case SYS_getegid:
      return kNobody;
    case SYS_getppid:
      return 1;
    case SYS_sysinfo:
      *reinterpret_cast<struct sysinfo*>(argument(context, 0)) = g_machine;
      return 0;
    case SYS_sched_getaffinity:
    case SYS_sched_getparam:
    case SYS_sched_getscheduler:
      return scheduling(number, descriptor, argument(context, 1), argument(context, 2));
    default:
      break;
  }
#ifdef SYS_open
  if (number == SYS_open) return open_file(text(0), argument(context, 1));
#endif
  if (number != SYS_openat) return std::nullopt;
  return open_file(text(1), argument(context, 2));
}

void on_system_call(int, siginfo_t* info, void* context) {
  const int before = errno;
  auto* machine = static_cast<ucontext_t*>(context);
  if (const std::optional<long> result = serve_call(info->si_syscall, machine)) {
    answer(machine, *result);
    errno = before;
    return;
  }
  int none = 0;
  if (g_status->signal.compare_exchange_strong(none, SIGSYS)) {
    g_status->system_call = info->si_syscall;
  }
  ::_exit(159);
}

void install_handlers() {
  constexpr std::size_t kStack = 64 << 10;
  stack_t stack{};
  stack.ss_sp = ::mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  stack.ss_size = kStack;
  ::sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESETHAND;
  action.sa_sigaction = on_fault;
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) {
    ::sigaction(signal, &action, nullptr);
  }
  action.sa_flags &= ~SA_RESETHAND;
  action.sa_sigaction = on_system_call;
  ::sigaction(SIGSYS, &action, nullptr);
}

// System calls of OpenMP, std::thread, malloc, the dynamic loader and printing, whatever their
// arguments. Numbers that an architecture lacks are left out.
const std::initializer_list<long> kAllowed = {
    SYS_readv,
    SYS_writev,
    SYS_pread64,
    SYS_lseek,
    SYS_close,
    SYS_getcwd,
    SYS_mmap,
    SYS_munmap,
    SYS_mprotect,
    SYS_mremap,
    SYS_brk,
    SYS_mlock,
    SYS_mlock2,
    SYS_munlock,
    SYS_membarrier,
    SYS_set_robust_list,
    SYS_set_tid_address,
    SYS_sched_yield,
    SYS_sched_get_priority_max,
    SYS_sched_get_priority_min,
    SYS_getcpu,
    SYS_get_mempolicy,
    SYS_set_mempolicy,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_times,
    SYS_getpid,
    SYS_gettid,
    SYS_getrandom,
    SYS_exit,
    SYS_exit_group,
    SYS_rt_sigreturn,
    SYS_rt_sigprocmask,
    SYS_rt_sigpending,
    SYS_sigaltstack,
    SYS_restart_syscall,
    SYS_ppoll,
#ifdef __x86_64__
    SYS_poll,
    SYS_arch_prctl,
    SYS_time,
#endif
};

// Calls that fail, as on a system that lacks what they ask for: programs try them in passing.
void refuse_quietly(SeccompFilter* f) {
  // Names of files, of the machine, and which pages of a file others have read.
  f->when({SYS_faccessat, SYS_faccessat2, SYS_readlinkat}, SeccompFilter::refuse(ENOENT));
#ifdef __x86_64__
  f->when({SYS_stat, SYS_lstat, SYS_access, SYS_readlink}, SeccompFilter::refuse(ENOENT));
#endif
  f->when({SYS_statx, SYS_mincore, SYS_fadvise64, SYS_mbind, SYS_msync, SYS_move_pages,
           SYS_migrate_pages, SYS_ioprio_get, SYS_ioprio_set, SYS_sched_getattr, SYS_sched_setattr,
           SYS_sched_rr_get_interval, SYS_getgroups, SYS_getresuid, SYS_getresgid,
           SYS_getrusage /* its largest size is that of the process that started it */},
          SeccompFilter::refuse(ENOSYS));
  f->when({SYS_uname, SYS_mlockall, SYS_munlockall, SYS_setpriority}, SeccompFilter::refuse(EPERM));
  f->when(SYS_ioctl, SeccompFilter::refuse(ENOTTY));
  // The C library falls back from clone3, whose flags cannot be seen.
  f->when(SYS_clone3, SeccompFilter::refuse(ENOSYS));
  // Restartable sequences would leave the gate at an instruction of a candidate's choice.
  f->when(SYS_rseq, SeccompFilter::refuse(ENOSYS));
}

// Calls that could tell of other processes, by their numbers: whether they exist, how much they
// compute. What concerns the caller alone is allowed; threads of this process have numbers that no
// filter can know, so calls about a number go to our handler.
void only_about_itself(SeccompFilter* f) {
  const std::uint32_t allow = SeccompFilter::allow();
  for (const long call : {SYS_sched_getaffinity, SYS_sched_getparam, SYS_sched_getscheduler}) {
    f->when_set(call, 0, SeccompFilter::trap());
    f->when(call, allow);
  }
  // These are made with signals blocked when a thread with attributes starts, and answered without
  // looking. The judge places threads itself, before each turn: a wish for another place is taken
  // as a hint and nothing done, its own included, since a thread that lies where the judge does
  // needs no other processor to wake up and finds its inputs in that one's caches. All threads have
  // the usual class and keep it.
  const std::uint32_t done = SeccompFilter::refuse(0);
  f->when(SYS_sched_setaffinity, done);
  f->when_equal(SYS_sched_setscheduler, 1, SCHED_OTHER, done);
  f->when({SYS_sched_setscheduler, SYS_sched_setparam}, SeccompFilter::refuse(EPERM));
  f->when_set(SYS_getpriority, 1, SeccompFilter::refuse(EPERM));
  f->when_equal(SYS_getpriority, 0, PRIO_PROCESS, allow);
  f->when(SYS_getpriority, SeccompFilter::refuse(EPERM));
  f->when_set(SYS_get_robust_list, 0, SeccompFilter::refuse(EPERM));
  f->when(SYS_get_robust_list, allow);
  // Clocks: those with small numbers, its own processor time, and that of a thread, which the
  // kernel gives to a thread's own process only. Not other processes', whose bit 2 is not set.
  const std::uint32_t own = (~static_cast<std::uint32_t>(::getpid()) << 3) | 2;
  for (const long call : {SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep}) {
    f->when_none(call, 0, ~15u, allow);
    f->when_equal(call, 0, own, allow);
    f->when_none(call, 0, 4, SeccompFilter::refuse(EINVAL));
    f->when(call, allow);
  }
  // Priority inheritance names the owner of a lock by its number, whoever that is.
  for (const std::uint32_t operation : {6, 8, 11, 12, 13}) {
    f->when_masked(SYS_futex, 1, 0x7f, operation, SeccompFilter::refuse(ENOSYS));
  }
  f->when(SYS_futex, allow);
}

// The worker's channel is read and written at one instruction each (cpu_gate.h).
void only_by_the_gate(SeccompFilter* f) {
  const std::uint32_t trap = SeccompFilter::trap();
  const GateAddresses gate = gate_addresses();
  f->when_on_file(SYS_read, kChannelFd, gate.read, trap);
  f->when(SYS_read, SeccompFilter::allow());
  f->when_on_file(SYS_write, kChannelFd, gate.wrote, trap);
  f->when(SYS_write, SeccompFilter::allow());
  for (const long call : {SYS_readv, SYS_writev, SYS_pread64, SYS_close}) {
    f->when_on_file(call, kChannelFd, 0, trap);
  }
}

// Where tensors lie and what guards them, and where the gate is.
void keep_pages(SeccompFilter* f, const std::vector<PageRange>& fixed) {
  const std::uint32_t trap = SeccompFilter::trap();
  for (const PageRange& range : fixed) {
    f->when_touching(SYS_mmap, {0, 1, 3, MAP_FIXED}, range, trap);
    f->when_touching(SYS_mremap, {0, 1, 0, 0}, range, trap);
    f->when_touching(SYS_mremap, {4, 2, 3, MREMAP_FIXED}, range, trap);
    for (const long call : {SYS_munmap, SYS_mprotect}) f->when_touching(call, {}, range, trap);
    // Advice about tensors is taken as a hint and not followed: large pages, or pages that come
    // back empty, would tell one side of a comparison from the other.
    f->when_touching(SYS_madvise, {}, range, SeccompFilter::refuse(0));
  }
}

// A handler that another thread's signal can start would run between an answer and the look at
// what it left: only a thread's own faults may have one.
void only_handlers_of_faults(SeccompFilter* f) {
  const std::uint32_t allow = SeccompFilter::allow();
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    f->when_equal(SYS_rt_sigaction, 0, static_cast<std::uint32_t>(signal), allow);
  }
  f->when_set(SYS_rt_sigaction, 1, SeccompFilter::refuse(EPERM));
  f->when(SYS_rt_sigaction, allow);
}

std::vector<sock_filter> make_filter(const std::vector<PageRange>& fixed) {
  SeccompFilter f;
  const std::uint32_t allow = SeccompFilter::allow(), trap = SeccompFilter::trap();
  only_by_the_gate(&f);
  f.when(SYS_gettid, allow);
  keep_pages(&f, fixed);
  f.when(kAllowed, allow);
  only_about_itself(&f);
  refuse_quietly(&f);
  // Threads, as the C library starts them, but no processes.
  constexpr std::uint32_t kThread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
                                    CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
                                    CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
  f.when_any(SYS_clone, 0, ~(kThread | CLONE_DETACHED), trap);
  f.when_none(SYS_clone, 0, CLONE_FILES,
              trap);  // each table of descriptors is memory that nobody counts
  f.when_any(SYS_clone, 0, CLONE_THREAD, allow);
  // The one signal that abort needs. SIGCONT, above all, would undo the supervisor's SIGSTOP.
  f.when_not(SYS_tgkill, 0, static_cast<std::uint32_t>(::getpid()), trap);
  f.when_equal(SYS_tgkill, 2, SIGABRT, allow);
  f.when_equal(SYS_tgkill, 2, 0, allow);  // whether a thread of its own exists
  only_handlers_of_faults(&f);
  for (const std::uint32_t command : {F_DUPFD, F_DUPFD_CLOEXEC}) {
    f.when_both(SYS_fcntl, {0, kChannelFd}, {1, command}, trap);
  }
  for (const std::uint32_t command : {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL}) {
    f.when_equal(SYS_fcntl, 1, command, allow);
  }
  for (const std::uint32_t command : {F_SETOWN, 15 /* F_SETOWN_EX */, F_SETSIG}) {
    f.when_equal(SYS_fcntl, 1, command, trap);
  }
  f.when(SYS_fcntl, SeccompFilter::refuse(EINVAL));
  // What concerns its own pages only: not MADV_REMOVE or MADV_PAGEOUT, which take them from shared
  // memory, nor merging, whose delays tell what others hold. 22-25: populating and collapsing.
  for (const std::uint32_t advice :
       {MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_DONTNEED, MADV_FREE,
        MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_DONTDUMP, MADV_DODUMP, 22, 23, 25}) {
    f.when_equal(SYS_madvise, 2, advice, allow);
  }
  f.when(SYS_madvise, SeccompFilter::refuse(EINVAL));
  // It may read but not set its limits, and name threads.
  for (const int argument : {0, 2}) {
    f.when_set(SYS_prlimit64, argument, SeccompFilter::refuse(EPERM));
  }
  f.when(SYS_prlimit64, allow);
  f.when_equal(SYS_prctl, 0, PR_SET_NAME, allow);
  f.when(SYS_prctl, SeccompFilter::refuse(EINVAL));
  return f.finish(trap);
}

// No file can be opened by name, on any kernel, since the filter refuses the calls. Where the
// kernel has Landlock, a process in its domain cannot reach the memory of one outside it either,
// whatever its user; elsewhere the dropped capabilities keep root out.
Sandbox no_files() {
  Sandbox sandbox;
  sandbox.own_pages = false;
  sandbox.open_files = 256;
  sandbox.file_bytes = 0;
  return sandbox;
}

std::string contents(int file) {
  struct stat st {};
  if (::fstat(file, &st) != 0) return "";
  std::string bytes(static_cast<std::size_t>(st.st_size), '\0');
  const ssize_t n = ::pread(file, bytes.data(), bytes.size(), 0);
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  return bytes;
}

// Loads the libraries that compilers link to, if `object` names them: a candidate opens no files.
void load_libraries(int object) {
  const std::string bytes = contents(object);
  for (const char* name :
       {"libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libgomp.so.1", "libatomic.so.1",
        "libquadmath.so.0", "libmvec.so.1", "libomp.so.5", "libomp.so", "libiomp5.so",
        "libc++.so.1", "libc++abi.so.1", "libunwind.so.1"}) {
    const std::string named = '\0' + std::string(name) + '\0';
    if (contains(bytes, named)) ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  ::dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL);  // ending a thread early needs it
}

// What may be read: how many processors there are, and noise. /proc/self/maps: sanitizers need it.
void serve_files(int object) {
  serve(kCpuObjectName, object);
  for (const char* path : {"/proc/cpuinfo", "/sys/devices/system/cpu/online",
                           "/sys/devices/system/cpu/possible", "/dev/urandom"}) {
    serve(path);
  }
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  serve("/proc/self/maps");
#endif
  g_statm = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
}

// How much memory there is, as the C library asks before it sorts.
void remember_machine() {
  struct sysinfo all {};
  ::sysinfo(&all);
  g_machine.totalram = g_machine.freeram = all.totalram;
  g_machine.mem_unit = all.mem_unit;
  g_machine.procs = 1;
}

}  // namespace

std::string enter_cpu_sandbox(CpuStatus* status, int object, std::int64_t address_space,
                              std::vector<PageRange> fixed) {
  g_status = status;
  if (object >= 0) load_libraries(object);
  serve_files(object);
  remember_machine();
  install_handlers();
  const auto limit = [](auto resource, rlim_t value) {
    const rlimit both{value, value};
    return ::setrlimit(resource, &both) == 0;
  };
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  if (address_space > 0) limit(RLIMIT_AS, static_cast<rlim_t>(address_space));
  const Result<PreparedSandbox> files = PreparedSandbox::make(no_files());
  if (!files) return files.error().text();
  if (const int error = files->enter(); error != 0) {
    return std::string("cannot give up privileges: ") + std::strerror(error);
  }
  if (!close_gate(status)) return "cannot protect memory: not enough memory";
  for (const PageRange& range : gate_ranges()) fixed.push_back(range);
  if (const int error = install_seccomp(make_filter(fixed)); error != 0) {
    return std::string("this kernel has no system-call filters (seccomp): ") + std::strerror(error);
  }
  return "";
}

}  // namespace kernelpro
