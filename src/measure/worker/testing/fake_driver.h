// SPDX-License-Identifier: Apache-2.0
// A fake CUDA driver, for tests without a GPU: a libcuda.so.1 that test_measure_worker links, so
// that dlopen finds it already loaded. The product has no seam for it.
//
// Device memory is memory of this process at the same addresses, and shared memory a memfd, as with
// the real driver's virtual memory calls. Kernels are functions of the test, or the judge's own,
// compiled for the host and run by one thread. All work is done at once, in order, on a fake clock,
// and takes at least as long as that says. A kernel's fault is reported by later calls, all of
// them, as a broken context does. Graph nodes without an edge between them run in the opposite
// order to the one in which they were added.
//
// One thread at a time uses it.
#pragma once

#if KERNELPRO_HAVE_CUDA

#include <cuda.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#define KP_FAKE_API __attribute__((visibility("default")))

namespace kernelpro::fake {

// One launch of a kernel, as the driver received it.
struct KP_FAKE_API Launch {
  std::string kernel;
  std::array<unsigned, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{0, 0, 0};
  unsigned shared = 0;
  bool cooperative = false;
  int priority = 0, cluster_policy = 0, carveout = -1;
  std::vector<std::string> parameters;            // bytes
  std::map<std::string, int>* globals = nullptr;  // of its module, all 0 in a fresh one
  CUresult fault = CUDA_SUCCESS;
  double us = 0;  // on the fake clock; the kernel's own, unless its body changes it

  template <class T>
  T value(std::size_t parameter) const {
    T result{};
    std::memcpy(&result, parameters.at(parameter).data(), sizeof result);
    return result;
  }
  // Device memory from the address in a parameter; null, and the launch faults, unless all of it is
  // mapped.
  template <class T>
  T* memory(std::size_t parameter, std::size_t count) {
    return static_cast<T*>(bytes_at(value<std::uint64_t>(parameter), count * sizeof(T)));
  }
  void* bytes_at(std::uint64_t address, std::size_t bytes);
};

struct KP_FAKE_API Kernel {
  std::vector<std::size_t> parameters;          // bytes of each
  std::function<void(Launch&)> body = nullptr;  // may be empty
  double us = 10;                               // on the fake clock
  int local_bytes = 0;                          // per thread
};

// Forgets everything. Without a GPU cuInit fails, as it does at the start: NVRTC, too, asks the
// driver for one, and gets no further with a fake.
KP_FAKE_API void reset(bool has_gpu);

KP_FAKE_API void define(const std::string& name, Kernel kernel);
// A cubin with these kernels.
KP_FAKE_API std::string image(const std::vector<std::string>& kernels);
// One with all of the judge's kernels.
KP_FAKE_API std::string judge_image();

// Calls, by their names without "cu", in order; "launch NAME" for a kernel outside a graph, and
// after GraphLaunch "run NAME", "copy" and "set" for the graph's nodes.
KP_FAKE_API const std::vector<std::string>& log();
KP_FAKE_API void clear_log();  // and the launches
KP_FAKE_API const std::vector<Launch>& launches();

// The call after `after` further ones of this name fails, once.
KP_FAKE_API void fail(const std::string& call, CUresult result, int after = 0);
// Call number `number` from now on fails, counting from 0 those that can fail.
KP_FAKE_API void fail_call(std::uint64_t number, CUresult result);
KP_FAKE_API std::uint64_t calls();        // that can fail, since the last reset
KP_FAKE_API const std::string& failed();  // the call that last failed as it was told
// From now on every call fails.
KP_FAKE_API void break_context(CUresult result);
// Reservations of fewer bytes get other addresses than they ask for.
KP_FAKE_API void misplace_below(std::uint64_t bytes);
// Nothing can be mapped read-only, as with some drivers. Else a kernel that writes there faults.
KP_FAKE_API void refuse_read_only();
// Memory of the GPU.
KP_FAKE_API void set_memory(std::uint64_t bytes);
// The driver knows this address as the host's.
KP_FAKE_API void add_host_memory(std::uint64_t address);
// Makes a graph node of this type, which no plan can hold.
KP_FAKE_API void add_node(CUgraph graph, CUgraphNodeType type);

// What was made and not destroyed: "1 module, 2 events", or "".
KP_FAKE_API std::string alive();
// What a real driver would answer by undefined behaviour: a kernel of an unloaded module, an
// unknown handle ...
KP_FAKE_API const std::vector<std::string>& misuse();

}  // namespace kernelpro::fake

#endif
