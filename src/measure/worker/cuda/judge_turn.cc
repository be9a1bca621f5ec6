// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/cuda/judge_turn.h"

#if KERNELPRO_HAVE_CUDA

#include <algorithm>

#include "base/clock.h"

namespace kernelpro {

namespace {

constexpr int kLaunches = 8;

// Gives the order when it goes out of scope, so that no process waits for a judge that failed.
class Order {
 public:
  Order(Gate* gate, std::uint64_t number) : gate_(gate), number_(number) {}
  ~Order() { give(); }
  Order(const Order&) = delete;
  Order& operator=(const Order&) = delete;
  void give() { gate_->give(Sign::kOrder, number_); }

 private:
  Gate* gate_;
  std::uint64_t number_;
};

double now_us() { return real_clock().now_s() * 1e6; }

}  // namespace

Result<void> JudgeTurns::open_gate(int stage, int fd) {
  KP_TRY(make_flush());
  KP_ASSIGN(Gate gate, Gate::map(fd));
  gates_[stage] = std::move(gate);
  return {};
}

Result<void> JudgeTurns::make_flush() {
  if (flush_bytes_ > 0) return {};
  const std::uint64_t bytes = kernelpro::flush_bytes(context_);
  KP_ASSIGN(flush_, allocate(cu_, bytes + 256));
  KP_CUDA_TRY(cu_.MemsetD8Async(flush_.get(), 1, bytes + 256, nullptr));
  KP_CUDA_TRY(cu_.CtxSynchronize());
  flush_bytes_ = bytes;
  return {};
}

Result<void> JudgeTurns::flush() {
  const std::uint64_t words = flush_bytes_ / 16;
  KP_CUDA_TRY(
      kernels_->run("flush_cache", words, flush_.get(), words, flush_.get() + flush_bytes_));
  return {};
}

Result<JudgeTurns::Turn> JudgeTurns::take(JudgeCase* judged, int stage, int set,
                                          std::uint64_t number, bool timed, double timeout_s) {
  const auto known = gates_.find(stage);
  if (known == gates_.end() || !judged->has_stage(stage)) {
    return fail(ErrorKind::kInternal, "no gate is open for this stage", "report this");
  }
  Gate& gate = known->second;
  Order order(&gate, number);
  KP_TRY(judged->clear_stage(stage, set));
  Turn turn;
  if (!gate.await(Sign::kReady, number, timeout_s)) return turn;
  const double start = now_us();
  KP_TRY(judged->reveal(stage, set));
  if (timed) KP_TRY(flush());
  KP_CUDA_TRY(cu_.CtxSynchronize());
  turn.revealing_us = now_us() - start;
  order.give();
  turn.answered = gate.await(Sign::kAnswer, number, timeout_s);
  if (!turn.answered) return turn;
  // Whatever the process still does, it does not reach what has been copied.
  KP_TRY(judged->collect(stage, set));
  KP_CUDA_TRY(cu_.CtxSynchronize());
  turn.us = now_us() - start;
  KP_ASSIGN(turn.intrusions, judged->stage_intrusions(stage, set));
  return turn;
}

Result<double> JudgeTurns::launch_us() {
  KP_TRY(make_flush());
  double least = 0;
  for (int k = 0; k < kLaunches; ++k) {
    const double start = now_us();
    KP_CUDA_TRY(kernels_->run("flush_cache", 1, flush_.get(), std::uint64_t{0},
                              flush_.get() + flush_bytes_));
    KP_CUDA_TRY(cu_.CtxSynchronize());
    const double us = now_us() - start;
    least = k == 0 ? us : std::min(least, us);
  }
  return least;
}

}  // namespace kernelpro

#endif
