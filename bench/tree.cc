// SPDX-License-Identifier: Apache-2.0
// The search in a tree of 100,000 nodes: microseconds for one select-and-update, bytes a node with
// all that was allocated for it, and the parts of a resume: reading the store, restoring the
// search. Usage: bench_tree [NODES [STORED]]. The store is made in a temporary folder, of
// candidates with the evaluation, evidence and diagnosis of a recorded one.
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/files.h"
#include "run/store.h"
#include "search/mcts.h"

namespace {

std::int64_t live_bytes = 0;  // of the whole program, as the allocator rounds them

}  // namespace

// Not inlined, or the compiler takes malloc and delete for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* at = std::malloc(size);
  if (at == nullptr) throw std::bad_alloc();
  live_bytes += static_cast<std::int64_t>(malloc_usable_size(at) + sizeof(std::size_t));
  return at;
}
[[gnu::noinline]] void operator delete(void* at) noexcept {
  if (at == nullptr) return;
  live_bytes -= static_cast<std::int64_t>(malloc_usable_size(at) + sizeof(std::size_t));
  std::free(at);
}
void operator delete(void* at, std::size_t) noexcept { operator delete(at); }

namespace kernelpro {
namespace {

double now_us() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e6 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_nsec);
}

// A reproducible landscape: a child is its parent's time times a random factor; a third fails.
class Children {
 public:
  NodeResult next(double parent_us) {
    NodeResult result;
    result.correct = uniform() > 0.33;
    if (!result.correct) return result;
    result.time_us = std::max(1.0, parent_us * std::exp(0.25 * (uniform() + uniform() - 0.9)));
    result.fraction = 1 / result.time_us;
    result.likely = 1 + uniform();
    result.upper = 2 * result.likely;
    return result;
  }

 private:
  double uniform() {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<double>(state_ >> 11) / static_cast<double>(1ull << 53);
  }
  std::uint64_t state_ = 1;
};

struct Step {
  std::int64_t parent;
  NodeResult result;
};

int depth_of(const std::vector<Step>& steps) {
  std::vector<int> depth(steps.size(), 0);
  int most = 0;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    depth[i] = depth[static_cast<std::size_t>(steps[i].parent - 1)] + 1;
    most = std::max(most, depth[i]);
  }
  return most;
}

void print_row(const std::vector<Step>& steps, std::vector<double>* costs, double bytes) {
  std::sort(costs->begin(), costs->end());
  double sum = 0;
  for (const double cost : *costs) sum += cost;
  const auto size = costs->size();
  std::printf("%8zu %6d %10.2f %8.2f %8.2f %8.1f %8.0f\n", steps.size(), depth_of(steps),
              sum / static_cast<double>(size), (*costs)[size / 2], (*costs)[size * 99 / 100],
              costs->back(), bytes / static_cast<double>(steps.size()));
  costs->clear();
}

std::vector<Step> grow(std::size_t most, int in_flight) {
  std::vector<Step> steps;
  steps.reserve(most);
  Children children;
  const std::int64_t before = live_bytes;
  const auto tree = make_mcts();
  std::vector<double> costs;
  costs.reserve(most);
  steps.push_back({0, {true, 1000}});
  tree->add_root(1, steps[0].result);
  std::vector<std::int64_t> flying;
  std::size_t shown = 1000;
  std::printf("%d in flight\n%8s %6s %10s %8s %8s %8s %8s\n", in_flight, "nodes", "depth",
              "mean us", "median", "p99", "most", "bytes");
  const std::int64_t base = live_bytes - before;
  const double reserved = static_cast<double>(base);
  double selecting = 0;
  while (steps.size() < most) {
    double from = now_us();
    const auto parent = tree->start();
    selecting = now_us() - from;
    if (!parent) break;
    flying.push_back(*parent);
    if (static_cast<int>(flying.size()) < in_flight) continue;
    const std::int64_t done = flying.front();
    flying.erase(flying.begin());
    const Step step{done, children.next(steps[static_cast<std::size_t>(done - 1)].result.time_us)};
    const auto id = static_cast<std::int64_t>(steps.size()) + 1;
    from = now_us();
    tree->finalize(done, id, step.result);
    costs.push_back(selecting + now_us() - from);
    steps.push_back(step);
    if (steps.size() == shown || steps.size() == most) {
      print_row(steps, &costs, static_cast<double>(live_bytes - before) - reserved);
      shown *= 10;
    }
  }
  return steps;
}

double restore_us(const std::vector<Step>& steps) {
  const double from = now_us();
  const auto tree = make_mcts();
  tree->add_root(1, steps[0].result);
  for (std::size_t i = 1; i < steps.size(); ++i) {
    tree->restore(steps[i].parent, static_cast<std::int64_t>(i) + 1, steps[i].result);
  }
  if (!tree->start()) std::abort();
  return now_us() - from;
}

template <class T>
T must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", result.error().text().c_str());
    std::exit(1);
  }
  return std::move(*result);
}

// `count` candidates below one another as in `steps`, each with what a recorded one came to.
void fill(Store& store, const StoredCandidate& like, const std::vector<Step>& steps,
          std::size_t count) {
  std::vector<Candidate> all;
  for (std::size_t i = 0; i < count; ++i) {
    Candidate candidate = like.known.candidate;
    // Sources are shared by many settings of their knobs, as the tuner's are.
    candidate.source += "// " + std::to_string(i / 50) + "\n";
    candidate.knobs["N"] = std::to_string(i % 50);
    candidate.origin.parent = steps[i].parent;
    all.push_back(std::move(candidate));
  }
  const auto ids = must(store.add(all));
  for (std::size_t i = 0; i < count; ++i) {
    const auto done = store.finish(ids[i], like.known.evaluation, like.evidence,
                                   like.known.diagnosis, static_cast<double>(i));
    if (!done) {
      std::fprintf(stderr, "%s\n", done.error().text().c_str());
      std::exit(1);
    }
  }
}

void resume(const std::vector<Step>& steps, std::size_t count) {
  const std::string recorded = KERNELPRO_SOURCE_DIR "/results/exchange/softmax";
  const auto source = must(Store::open(recorded, Store::Mode::kRead));
  const RunHeader header = must(source->header());
  const StoredCandidate like = must(source->candidates()).at(1);
  const TempDir dir;
  const std::string run = join(dir.path(), "run");
  double from = now_us();
  {
    const auto store = must(Store::open(run, Store::Mode::kCreate, &header));
    fill(*store, like, steps, count);
  }
  std::printf("store written: %zu candidates in %.1f s, %.0f MB\n", count, (now_us() - from) / 1e6,
              static_cast<double>(must(read_file(store_path(run))).size()) / 1e6);
  from = now_us();
  const auto store = must(Store::open(run, Store::Mode::kWrite));
  const double opened = now_us();
  const auto candidates = must(store->candidates());
  std::printf("store opened and checked %.2f s, read %.2f s\n", (opened - from) / 1e6,
              (now_us() - opened) / 1e6);
}

}  // namespace
}  // namespace kernelpro

int main(int argc, char** argv) {
  using namespace kernelpro;
  const auto count = static_cast<std::size_t>(argc > 1 ? std::atoll(argv[1]) : 100000);
  const auto stored = static_cast<std::size_t>(argc > 2 ? std::atoll(argv[2]) : 100000);
  grow(count, 1);
  const std::vector<Step> steps = grow(count, 4);
  std::vector<double> times;
  for (int i = 0; i < 5; ++i) times.push_back(restore_us(steps));
  std::sort(times.begin(), times.end());
  std::printf("restore of %zu nodes: %.0f ms (median of 5)\n", steps.size(), times[2] / 1000);
  if (stored > 0) resume(steps, std::min(stored, steps.size()));
  return 0;
}
