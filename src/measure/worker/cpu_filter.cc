// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/cpu_filter.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

#include "base/process/command.h"
#include "measure/worker/cpu_gate.h"

namespace kernelpro {

namespace {

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

}  // namespace

std::vector<sock_filter> cpu_filter(const std::vector<PageRange>& fixed) {
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

}  // namespace kernelpro
