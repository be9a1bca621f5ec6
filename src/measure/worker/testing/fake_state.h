// SPDX-License-Identifier: Apache-2.0
// The state of the fake driver, for its own sources.
#pragma once

#if KERNELPRO_HAVE_CUDA

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "measure/worker/testing/fake_driver.h"

// Defines an entry point; cuda.h maps its name to the versioned symbol.
#define KP_FAKE(name, ...) extern "C" KP_FAKE_API CUresult CUDAAPI cu##name(__VA_ARGS__)

// Returns from an entry point that must fail.
#define KP_FAKE_ENTER(name)                                                \
  if (const CUresult kp_entered = ::kernelpro::fake::state().enter(#name); \
      kp_entered != CUDA_SUCCESS)                                          \
  return kp_entered

namespace kernelpro::fake {

inline constexpr std::uint64_t kGranularity = 2ull << 20;
inline constexpr int kMostShared = 232448;  // of a block that opts in, on sm_90

struct Function;

struct Module {
  std::string image;
  std::map<std::string, int> globals;
  std::map<std::string, Function*> functions;  // those that were asked for
};

struct Function {
  Module* module = nullptr;
  std::string name;
  const Kernel* kernel = nullptr;
  int max_dynamic_shared = 48 * 1024;
  int carveout = -1;
  int non_portable_cluster = 0;
};

struct Event {
  double us = -1;  // when it was recorded
};

struct Node {
  CUgraphNodeType type{};
  Function* function = nullptr;
  Launch launch;
  std::vector<void*> pointers;  // into launch.parameters
  std::map<int, CUlaunchAttributeValue> attributes;
  CUDA_MEMCPY3D copy{};
  CUDA_MEMSET_NODE_PARAMS set{};
};

struct Edge {
  Node* from = nullptr;
  Node* to = nullptr;
  CUgraphEdgeData data{};
};

struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<Edge> edges;
};

struct Exec {
  std::vector<Node> order;
};

struct Physical {
  int fd = -1;
  std::uint64_t bytes = 0;
};

struct Mapping {
  std::uint64_t bytes = 0;
  bool accessible = false;
};

// Owns objects that the driver hands out as opaque pointers. Destroyed ones are kept until the next
// reset, so that using them is noticed.
template <class T>
class Objects {
 public:
  T* add() {
    all_.push_back(std::make_unique<T>());
    live_.insert(all_.back().get());
    return all_.back().get();
  }
  bool has(const void* handle) const { return live_.count(handle) != 0; }
  bool remove(const void* handle) { return live_.erase(handle) != 0; }
  std::size_t count() const { return live_.size(); }
  void clear() {
    all_.clear();
    live_.clear();
  }

 private:
  std::deque<std::unique_ptr<T>> all_;
  std::set<const void*> live_;
};

struct State {
  std::map<std::string, Kernel> kernels;  // of tests
  std::vector<std::string> log;
  std::vector<Launch> launches;
  std::vector<std::string> misuse;
  double now_us = 0;
  CUresult broken = CUDA_SUCCESS;
  std::uint64_t calls = 0;
  struct Failure {
    std::string call;  // "": any
    std::uint64_t after = 0;
    CUresult result = CUDA_SUCCESS;
  };
  std::vector<Failure> failures;
  std::string failed;
  std::uint64_t misplaced_below = 0;
  bool no_read_only = false;
  bool has_gpu = false;

  int contexts = 0;
  std::uint64_t total_bytes = 8ull << 30, used_bytes = 0;
  std::map<std::uint64_t, std::uint64_t> ranges;  // reserved: address, bytes
  std::map<std::uint64_t, Mapping> mappings;      // by address
  std::map<std::uint64_t, Physical> physical;     // by handle
  std::uint64_t next_handle = 1;
  std::map<std::uint64_t, std::uint64_t> allocations;
  std::set<std::uint64_t> host_memory;
  Objects<Module> modules;
  Objects<Function> functions;
  Objects<int> streams;
  Objects<Event> events;
  Objects<Graph> graphs;
  Objects<Exec> execs;
  std::map<CUstream, CUgraph> captures;  // streams that are being captured

  // Logs a call; the error that it must return.
  CUresult enter(const char* call);
  // The same for calls that release something, which also work in a broken context.
  void leave(const char* call) { log.emplace_back(call); }
  void complain(std::string what) { misuse.push_back(std::move(what)); }
  bool is_mapped(std::uint64_t address, std::uint64_t bytes) const;
  bool good_stream(CUstream stream) const { return stream == nullptr || streams.has(stream); }
  const Kernel* kernel(const std::string& name) const;
  // Runs it now.
  CUresult run(Function* function, Launch launch, const char* how);
  CUresult copy(const CUDA_MEMCPY3D& copy);
  CUresult set(const CUDA_MEMSET_NODE_PARAMS& set);
};

State& state();

// The judge's kernels on the host (judge_on_host.cc).
const std::map<std::string, Kernel>& judge_kernels();

// Gives back what a failed test left, so that the next one can have the same addresses.
void release_memory();

// Why the driver would refuse this launch, or CUDA_SUCCESS.
CUresult check_launch(const Function& function, const Launch& launch);
// Whether both ends are mapped: a graph node cannot be made otherwise.
bool fits(const CUDA_MEMCPY3D& copy);
bool fits(const CUDA_MEMSET_NODE_PARAMS& set);
// Takes over the values that `pointers` name.
void read_parameters(const Kernel& kernel, void** pointers, Launch* launch);
void apply_attribute(CUlaunchAttributeID id, const CUlaunchAttributeValue& value, Launch* launch);

}  // namespace kernelpro::fake

#endif
