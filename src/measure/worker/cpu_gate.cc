// SPDX-License-Identifier: Apache-2.0
// Nothing here that runs after `close_gate` calls a function of another library or returns to an
// address in memory that a candidate could have prepared.
#include "measure/worker/cpu_gate.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "base/process/command.h"
#include "measure/worker/raw_call.h"

namespace kernelpro {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::uintptr_t kBelow = 64 << 10;   // of the stack: what loading may use
constexpr std::uintptr_t kAround = 64 << 10;  // that nothing may change, on either side
constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};

// As the kernel has it: the C library's struct sigaction is another.
struct KernelAction {
  std::uintptr_t handler = 0;
  unsigned long flags = 0;
  std::uintptr_t rest[6] = {};
};

}  // namespace

namespace gate {

struct Sealed {
  std::uintptr_t stack = 0;  // first, for the assembler
  long thread = 0;
  std::uint64_t mask = 0;
  CpuStatus* status = nullptr;
  std::uintptr_t handlers[std::size(kFaults)] = {};
  stack_t handlers_stack = {};
  std::uintptr_t thread_pointer = 0;
};
union SealedPage {
  Sealed is;
  char page[kPage];
  constexpr SealedPage() : is() {}
};

}  // namespace gate

extern "C" {
extern char __executable_start, _end;  // by the linker
extern const char kernelpro_gate_wrote[], kernelpro_gate_read[];
[[noreturn]] void kernelpro_gate_write(const void* bytes, std::size_t count);
[[noreturn]] void kernelpro_gate_order(void* bytes, std::size_t count);
[[noreturn]] void kernelpro_gate_answered(long written);
[[noreturn]] void kernelpro_gate_ordered(long got);
// Calls `entry(arguments)`. On x86-64 it ends in kernelpro_gate_changed unless the callee restores
// the registers that it must.
void kernelpro_gate_call(void (*entry)(const void*), const void* arguments);
[[noreturn]] void kernelpro_gate_changed();
[[gnu::visibility("hidden"), gnu::used]] alignas(kPage) gate::SealedPage kernelpro_sealed;
}

namespace {

// An order as it arrives, read at once: an order takes no more calls of the system than it must.
struct OrderFrame {
  std::uint32_t length = 0;
  CpuCall order;
};
static_assert(sizeof(OrderFrame) == sizeof(std::uint32_t) + sizeof(CpuCall));
struct DoneFrame {
  std::uint32_t length = sizeof(CpuDone);
  CpuDone done;
};

Orderly* g_orderly = nullptr;
OrderFrame g_order;
std::size_t g_got = 0;  // bytes of g_order
const DoneFrame g_done;

}  // namespace

// The system calls, and where they go on: on the sealed stack, whatever it was before.
#if defined(__x86_64__)
asm(R"(
  .text
  .globl kernelpro_gate_write, kernelpro_gate_wrote, kernelpro_gate_order, kernelpro_gate_read
  .hidden kernelpro_gate_write, kernelpro_gate_wrote, kernelpro_gate_order, kernelpro_gate_read
kernelpro_gate_write:
  mov %rsi, %rdx
  mov %rdi, %rsi
  mov $3, %edi
  mov $1, %eax
  syscall
kernelpro_gate_wrote:
  mov kernelpro_sealed(%rip), %rsp
  movq $0, (%rsp)
  xor %ebp, %ebp
  cld
  mov %rax, %rdi
  jmp kernelpro_gate_answered
kernelpro_gate_order:
  mov %rsi, %rdx
  mov %rdi, %rsi
  mov $3, %edi
  xor %eax, %eax
  syscall
kernelpro_gate_read:
  mov kernelpro_sealed(%rip), %rsp
  movq $0, (%rsp)
  xor %ebp, %ebp
  cld
  mov %rax, %rdi
  jmp kernelpro_gate_ordered

  .globl kernelpro_gate_call
  .hidden kernelpro_gate_call
kernelpro_gate_call:
  .cfi_startproc
  push %rbp
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %rbp, 0
  push %rbx
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %rbx, 0
  push %r12
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %r12, 0
  push %r13
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %r13, 0
  push %r14
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %r14, 0
  push %r15
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %r15, 0
  sub $8, %rsp
  .cfi_adjust_cfa_offset 8
  mov %rdi, %rax
  mov %rsi, %rdi
  lea 48(%rsp), %rbp
  mov %rsp, %rbx
  lea 1(%rsp), %r12
  lea 2(%rsp), %r13
  lea 3(%rsp), %r14
  lea 4(%rsp), %r15
  call *%rax
  mov %rsp, %rax
  xor %rbx, %rax
  lea 48(%rsp), %rcx
  xor %rbp, %rcx
  or %rcx, %rax
  lea 1(%rsp), %rcx
  xor %r12, %rcx
  or %rcx, %rax
  lea 2(%rsp), %rcx
  xor %r13, %rcx
  or %rcx, %rax
  lea 3(%rsp), %rcx
  xor %r14, %rcx
  or %rcx, %rax
  lea 4(%rsp), %rcx
  xor %r15, %rcx
  or %rcx, %rax
  jnz 1f
  .cfi_remember_state
  add $8, %rsp
  .cfi_adjust_cfa_offset -8
  pop %r15
  .cfi_adjust_cfa_offset -8
  .cfi_restore %r15
  pop %r14
  .cfi_adjust_cfa_offset -8
  .cfi_restore %r14
  pop %r13
  .cfi_adjust_cfa_offset -8
  .cfi_restore %r13
  pop %r12
  .cfi_adjust_cfa_offset -8
  .cfi_restore %r12
  pop %rbx
  .cfi_adjust_cfa_offset -8
  .cfi_restore %rbx
  pop %rbp
  .cfi_adjust_cfa_offset -8
  .cfi_restore %rbp
  ret
1:
  .cfi_restore_state
  mov kernelpro_sealed(%rip), %rsp
  movq $0, (%rsp)
  xor %ebp, %ebp
  cld
  jmp kernelpro_gate_changed
  .cfi_endproc
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .globl kernelpro_gate_write, kernelpro_gate_wrote, kernelpro_gate_order, kernelpro_gate_read
  .hidden kernelpro_gate_write, kernelpro_gate_wrote, kernelpro_gate_order, kernelpro_gate_read
kernelpro_gate_write:
  mov x2, x1
  mov x1, x0
  mov x0, #3
  mov x8, #64
  svc #0
kernelpro_gate_wrote:
  adrp x9, kernelpro_sealed
  ldr x9, [x9, :lo12:kernelpro_sealed]
  mov sp, x9
  mov x29, #0
  mov x30, #0
  b kernelpro_gate_answered
kernelpro_gate_order:
  mov x2, x1
  mov x1, x0
  mov x0, #3
  mov x8, #63
  svc #0
kernelpro_gate_read:
  adrp x9, kernelpro_sealed
  ldr x9, [x9, :lo12:kernelpro_sealed]
  mov sp, x9
  mov x29, #0
  mov x30, #0
  b kernelpro_gate_ordered

  .globl kernelpro_gate_call
  .hidden kernelpro_gate_call
kernelpro_gate_call:
  mov x16, x0
  mov x0, x1
  br x16
)");
#endif

namespace {

static_assert(kChannelFd == 3, "the assembler's number");

// Whether rounding, precision, exceptions, alignment checks and the like are as the ABI has them
// for every call: a callee that changes them must restore them.
[[gnu::always_inline]] inline bool default_float_state() {
#if defined(__x86_64__)
  constexpr unsigned kControls = 0xffc0, kDefault = 0x1f80;  // without the sticky flags
  constexpr unsigned long long kDirection = 1u << 10, kAlignmentChecks = 1u << 18;
  struct X87 {
    std::uint16_t control, unused1, status, unused2, tags, unused3;
    std::uint32_t rest[4];
  } x87;
  asm volatile("fnstenv %0\n\tfldenv %0" : "=m"(x87));
  return (__builtin_ia32_stmxcsr() & kControls) == kDefault && x87.control == 0x37f &&
         x87.tags == 0xffff &&
         (__builtin_ia32_readeflags_u64() & (kDirection | kAlignmentChecks)) == 0;
#elif defined(__aarch64__)
  std::uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  return control == 0;
#endif
}

[[gnu::always_inline]] inline stack_t handlers_stack() {
  stack_t now = {};
  raw_call(SYS_sigaltstack, 0, reinterpret_cast<long>(&now));
  return now;
}
[[gnu::always_inline]] inline bool same_stack(const stack_t& a, const stack_t& b) {
  return a.ss_sp == b.ss_sp && a.ss_size == b.ss_size &&
         (a.ss_flags & ~SS_ONSTACK) == (b.ss_flags & ~SS_ONSTACK);
}

// Where the calling thread's variables are. Instructions can change it too, so that a filter of
// system calls cannot keep it.
[[gnu::always_inline]] inline std::uintptr_t thread_pointer() {
#if defined(__x86_64__)
  constexpr long kGetFs = 0x1003;  // ARCH_GET_FS
  std::uintptr_t now = 0;
  raw_call(SYS_arch_prctl, kGetFs, reinterpret_cast<long>(&now));
#elif defined(__aarch64__)
  std::uintptr_t now = 0;
  asm volatile("mrs %0, tpidr_el0" : "=r"(now));
#endif
  return now;
}

[[gnu::always_inline]] inline bool signals_as_before(const gate::Sealed& sealed) {
  std::uint64_t mask = 0;
  raw_call(SYS_rt_sigprocmask, SIG_BLOCK, 0, reinterpret_cast<long>(&mask), sizeof mask);
  bool same = mask == sealed.mask;
  for (std::size_t i = 0; i < std::size(kFaults); ++i) {
    KernelAction action;
    raw_call(SYS_rt_sigaction, kFaults[i], 0, reinterpret_cast<long>(&action), sizeof mask);
    same = same && action.handler == sealed.handlers[i];
  }
  return same && same_stack(handlers_stack(), sealed.handlers_stack);
}

[[gnu::always_inline]] inline void require_float_state() {
  if (default_float_state()) return;
  kernelpro_sealed.is.status->float_state = 1;
  end_with(kCpuFloatStateExit);
}

[[gnu::always_inline]] inline void require_state() {
  const gate::Sealed& sealed = kernelpro_sealed.is;
  require_float_state();
  if (raw_call(SYS_gettid, 0) != sealed.thread) {
    sealed.status->system_call = SYS_write;
    end_with(kCpuForeignAnswerExit);
  }
  if (!signals_as_before(sealed)) {
    sealed.status->signal_state = 1;
    end_with(kCpuSignalStateExit);
  }
  if (thread_pointer() != sealed.thread_pointer) kernelpro_gate_changed();
}

[[noreturn, gnu::always_inline]] inline void read_rest() {
  kernelpro_gate_order(reinterpret_cast<char*>(&g_order) + g_got, sizeof g_order - g_got);
}

[[gnu::always_inline]] inline bool acceptable(const CpuCall& order) {
  return order.first >= 0 && order.sets >= 0 && order.sets <= g_orderly->sets - order.first;
}

}  // namespace

GateAddresses gate_addresses() {
  return {reinterpret_cast<std::uintptr_t>(kernelpro_gate_wrote),
          reinterpret_cast<std::uintptr_t>(kernelpro_gate_read)};
}

std::vector<PageRange> gate_ranges() {
  const std::uintptr_t stack = kernelpro_sealed.is.stack;
  return {{reinterpret_cast<std::uintptr_t>(&__executable_start),
           reinterpret_cast<std::uintptr_t>(&_end)},
          {stack - kAround, stack + kBelow + kAround}};
}

bool close_gate(CpuStatus* status) {
  gate::Sealed& sealed = kernelpro_sealed.is;
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  sealed.stack = (here - kBelow) & ~std::uintptr_t{63};
#if defined(__x86_64__)
  sealed.stack -= sizeof sealed.stack;  // as if called, by nobody
#endif
  sealed.thread = raw_call(SYS_gettid, 0);
  raw_call(SYS_rt_sigprocmask, SIG_BLOCK, 0, reinterpret_cast<long>(&sealed.mask),
           sizeof sealed.mask);
  sealed.status = status;
  for (std::size_t i = 0; i < std::size(kFaults); ++i) {
    KernelAction action;
    raw_call(SYS_rt_sigaction, kFaults[i], 0, reinterpret_cast<long>(&action), 8);
    sealed.handlers[i] = action.handler;
  }
  sealed.handlers_stack = handlers_stack();
  sealed.thread_pointer = thread_pointer();
  return ::mprotect(&kernelpro_sealed, kPage, PROT_READ) == 0;
}

void answer_and_serve(const void* frame, std::size_t bytes, Orderly* orderly) {
  g_orderly = orderly;
  require_float_state();  // constructors have run
  kernelpro_gate_write(frame, bytes);
}

extern "C" [[gnu::used, gnu::visibility("hidden")]] void kernelpro_gate_changed() {
  kernelpro_sealed.is.status->registers = 1;
  end_with(kCpuRegistersExit);
}

// The clock has stopped, so looking is free. Also where a candidate jumped to the system call: what
// it has not restored is seen all the same.
extern "C" [[gnu::used, gnu::visibility("hidden")]] void kernelpro_gate_answered(long written) {
  require_state();
  if (written <= 0) end_with(0);
  if (g_orderly->entry == nullptr) end_with(1);  // it said why
  g_got = 0;
  read_rest();
}

extern "C" [[gnu::used, gnu::visibility("hidden")]] void kernelpro_gate_ordered(long got) {
  if (got <= 0) end_with(0);  // the supervisor has gone
  g_got += static_cast<std::size_t>(got);
  if (g_got >= sizeof g_order.length && g_order.length != sizeof g_order.order) end_with(1);
  if (g_got < sizeof g_order) read_rest();
  const CpuCall order = g_order.order;
  if (!acceptable(order)) end_with(1);
  for (std::int32_t i = 0; i < order.repeats; ++i) {
    for (std::int32_t set = 0; set < order.sets; ++set) {
      kernelpro_gate_call(g_orderly->entry,
                          g_orderly->arguments[static_cast<std::size_t>(order.first + set)].data());
      require_float_state();
    }
  }
  kernelpro_gate_write(&g_done, sizeof g_done);
}

}  // namespace kernelpro
