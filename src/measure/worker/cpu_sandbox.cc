// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/cpu_sandbox.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
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
#include <optional>
#include <vector>

#include "base/files.h"
#include "base/process/sandbox.h"
#include "base/process/seccomp.h"
#include "base/text.h"
#include "measure/worker/cpu_filter.h"
#include "measure/worker/cpu_gate.h"
#include "measure/worker/raw_call.h"

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
  if (signal == SIGABRT) {
    raw_call(SYS_tgkill, raw_call(SYS_getpid, 0), raw_call(SYS_gettid, 0), SIGABRT);
  }
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
  end_with(159);
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
  if (const int error = install_seccomp(cpu_filter(fixed)); error != 0) {
    return std::string("this kernel has no system-call filters (seccomp): ") + std::strerror(error);
  }
  return "";
}

}  // namespace kernelpro
