// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/cpu_sandbox.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

#include "base/files.h"
#include "base/process/sandbox.h"

namespace kernelpro {

namespace {

CpuStatus* g_status = nullptr;

// Report that the process leaves when it dies; only async-signal-safe calls.

std::int64_t mapped_pages() {
  const int fd = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[64];
  const ssize_t n = ::read(fd, text, sizeof text - 1);
  ::close(fd);
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
  // Restores the default action: returning to the fault, or this, ends the process with its signal.
  ::signal(signal, SIG_DFL);
  if (signal == SIGABRT) ::raise(SIGABRT);
}

void on_refused(int, siginfo_t* info, void*) {
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
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  action.sa_sigaction = on_fault;
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) {
    ::sigaction(signal, &action, nullptr);
  }
  action.sa_sigaction = on_refused;
  ::sigaction(SIGSYS, &action, nullptr);
}

// System calls of OpenMP, std::thread, malloc, the dynamic loader and printing. Numbers that an
// architecture lacks are left out.
constexpr int kAllowed[] = {
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_pread64,
    SYS_lseek,
    SYS_close,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_faccessat,
    SYS_faccessat2,
    SYS_readlinkat,
    SYS_getdents64,
    SYS_getcwd,
    SYS_fadvise64,
    SYS_mmap,
    SYS_munmap,
    SYS_mprotect,
    SYS_mremap,
    SYS_madvise,
    SYS_brk,
    SYS_mincore,
    SYS_mlock,
    SYS_munlock,
    SYS_msync,
    SYS_membarrier,
    SYS_futex,
    SYS_set_robust_list,
    SYS_get_robust_list,
    SYS_rseq,
    SYS_set_tid_address,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_sched_getparam,
    SYS_sched_getscheduler,
    SYS_sched_get_priority_max,
    SYS_sched_get_priority_min,
    SYS_getcpu,
    SYS_get_mempolicy,
    SYS_mbind,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_times,
    SYS_getrusage,
    SYS_getpid,
    SYS_gettid,
    SYS_getppid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_uname,
    SYS_sysinfo,
    SYS_getrandom,
    SYS_exit,
    SYS_exit_group,
    SYS_rt_sigreturn,
    SYS_rt_sigprocmask,
    SYS_rt_sigpending,
    SYS_sigaltstack,
    SYS_restart_syscall,
    SYS_recvmsg,
    SYS_sendmsg,
    SYS_ppoll,
#ifdef __x86_64__
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_poll,
    SYS_arch_prctl,
    SYS_time,
    SYS_getdents,
#endif
};

class Filter {
 public:
  void statement(std::uint16_t code, std::uint32_t k) { code_.push_back({code, 0, 0, k}); }
  // Skips `yes` or `no` instructions after the next one.
  void jump(std::uint16_t test, std::uint32_t k, std::uint8_t yes, std::uint8_t no) {
    code_.push_back({static_cast<std::uint16_t>(BPF_JMP | test | BPF_K), yes, no, k});
  }
  void load(std::size_t offset) {
    statement(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
  }
  void load_argument(int index) {  // its low half
    load(offsetof(seccomp_data, args) + 8 * static_cast<std::size_t>(index));
  }
  void give(std::uint32_t verdict) { statement(BPF_RET | BPF_K, verdict); }
  void allow(int call) {
    jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, 1);
    give(SECCOMP_RET_ALLOW);
  }
  // Allows `call` if its argument has none of `bits`, else traps.
  void allow_without(int call, int argument, std::uint32_t bits) {
    jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, 4);
    load_argument(argument);
    jump(BPF_JSET, bits, 0, 1);
    give(SECCOMP_RET_TRAP);
    give(SECCOMP_RET_ALLOW);
  }
  // Allows `call` if its argument is `value`, else `otherwise`.
  void allow_equal(int call, int argument, std::uint32_t value, std::uint32_t otherwise) {
    jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, 4);
    load_argument(argument);
    jump(BPF_JEQ, value, 0, 1);
    give(SECCOMP_RET_ALLOW);
    give(otherwise);
  }
  // Allows `call` if both halves of these arguments are zero, else `otherwise`.
  void allow_zero(int call, const std::vector<int>& arguments, std::uint32_t otherwise) {
    const auto length = static_cast<std::uint8_t>(4 * arguments.size() + 2);
    jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, length);
    std::uint8_t left = length;
    for (const int argument : arguments) {
      for (const int half : {0, 4}) {
        load(offsetof(seccomp_data, args) + 8 * static_cast<std::size_t>(argument) +
             static_cast<std::size_t>(half));
        left = static_cast<std::uint8_t>(left - 2);
        jump(BPF_JEQ, 0, 0, static_cast<std::uint8_t>(left - 1));
      }
    }
    give(SECCOMP_RET_ALLOW);
    give(otherwise);
  }
  // Allows `call` if its argument is none of these, else traps.
  void allow_unless(int call, int argument, const std::vector<std::uint32_t>& values) {
    auto left = static_cast<std::uint8_t>(values.size());
    jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, static_cast<std::uint8_t>(left + 3));
    load_argument(argument);
    for (const std::uint32_t value : values) jump(BPF_JEQ, value, left--, 0);
    give(SECCOMP_RET_ALLOW);
    give(SECCOMP_RET_TRAP);
  }
  // Traps `call` if the argument is `value`; other rules for it follow.
  void trap_equal(int call, int argument, std::uint32_t value) {
    jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, 4);
    load_argument(argument);
    jump(BPF_JEQ, value, 0, 1);
    give(SECCOMP_RET_TRAP);
    load(offsetof(seccomp_data, nr));
  }
  std::vector<sock_filter>& code() { return code_; }

 private:
  std::vector<sock_filter> code_;
};

constexpr std::uint32_t refuse(int error) {
  return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error);
}

Filter make_filter() {
#if defined(__x86_64__)
  constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#else
  constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif
  constexpr std::uint32_t kWriting = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;
  Filter f;
  f.load(offsetof(seccomp_data, arch));
  f.jump(BPF_JEQ, kArchitecture, 1, 0);
  f.give(SECCOMP_RET_KILL_PROCESS);
  f.load(offsetof(seccomp_data, nr));
#ifdef __x86_64__
  f.jump(BPF_JSET, 0x40000000u, 0, 1);  // the x32 numbers
  f.give(SECCOMP_RET_KILL_PROCESS);
#endif
  for (const int call : kAllowed) f.allow(call);
  // Threads but not processes. The C library falls back from clone3, whose flags cannot be seen.
  f.jump(BPF_JEQ, SYS_clone3, 0, 1);
  f.give(refuse(ENOSYS));
  f.jump(BPF_JEQ, SYS_clone, 0, 4);
  f.load_argument(0);
  f.jump(BPF_JSET, CLONE_THREAD, 0, 1);
  f.give(SECCOMP_RET_ALLOW);
  f.give(SECCOMP_RET_TRAP);
  f.allow_without(SYS_openat, 2, kWriting);
#ifdef __x86_64__
  f.allow_without(SYS_open, 1, kWriting);
#endif
  // Signals to itself, so that abort works; but not the signals that others use to end a process:
  // the supervisor attributes those to the machine.
  for (const std::uint32_t signal : {SIGHUP, SIGINT, SIGKILL, SIGTERM}) {
    f.trap_equal(SYS_tgkill, 2, signal);
    f.trap_equal(SYS_kill, 1, signal);
  }
  f.allow_unless(SYS_fcntl, 1, {F_SETOWN, F_SETOWN_EX, F_SETSIG});
  const std::uint32_t self = static_cast<std::uint32_t>(::getpid());
  f.allow_equal(SYS_tgkill, 0, self, SECCOMP_RET_TRAP);
  f.allow_equal(SYS_kill, 0, self, SECCOMP_RET_TRAP);
  // The handler that reports refused calls cannot be replaced.
  f.jump(BPF_JEQ, SYS_rt_sigaction, 0, 4);
  f.load_argument(0);
  f.jump(BPF_JEQ, SIGSYS, 0, 1);
  f.give(refuse(EPERM));
  f.give(SECCOMP_RET_ALLOW);
  // It may read but not set its limits, choose its own thread's processors, name threads, and query
  // terminals.
  f.allow_zero(SYS_prlimit64, {0, 2}, refuse(EPERM));
  f.allow_zero(SYS_sched_setaffinity, {0}, refuse(EPERM));
  f.allow_equal(SYS_prctl, 0, PR_SET_NAME, refuse(EINVAL));
  f.jump(BPF_JEQ, SYS_ioctl, 0, 1);
  f.give(refuse(ENOTTY));
  f.give(SECCOMP_RET_TRAP);
  return f;
}

// Files that may be read: the system's and the candidate's own. A process in such a domain cannot
// reach the memory of one outside it either, whatever its user. On kernels without Landlock, the
// dropped capabilities keep root out of other processes, and files can be read.
Sandbox files_of(const std::string& object) {
  Sandbox sandbox;
  sandbox.read = system_roots();
  for (const char* path :
       {"/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/sys/devices/system"}) {
    sandbox.read.emplace_back(path);
  }
  sandbox.read.push_back(dirname(object));
  sandbox.open_files = 0;
  sandbox.file_bytes = 0;
  return sandbox;
}

}  // namespace

std::string enter_cpu_sandbox(CpuStatus* status, const std::string& object,
                              std::int64_t address_space) {
  g_status = status;
  install_handlers();
  const auto limit = [](auto resource, rlim_t value) {
    const rlimit both{value, value};
    return ::setrlimit(resource, &both) == 0;
  };
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  if (address_space > 0) limit(RLIMIT_AS, static_cast<rlim_t>(address_space));
  const Result<PreparedSandbox> files = PreparedSandbox::make(files_of(object));
  if (!files) return files.error().text();
  if (const int error = files->enter(); error != 0) {
    return std::string("cannot give up privileges: ") + std::strerror(error);
  }
  Filter filter = make_filter();
  const sock_fprog program{static_cast<unsigned short>(filter.code().size()), filter.code().data()};
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) {
    return std::string("this kernel has no system-call filters (seccomp): ") + std::strerror(errno);
  }
  return "";
}

}  // namespace kernelpro
