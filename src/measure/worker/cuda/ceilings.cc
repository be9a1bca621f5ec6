// SPDX-License-Identifier: Apache-2.0
// Role cuda-ceilings: describes the GPU and measures its limits: copy bandwidth, fp32
// multiply-adds, and bf16 matrix products through cuBLAS if that library is found. Answers with one
// Machine.
#if KERNELPRO_HAVE_CUDA

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "base/cuda_toolkit.h"
#include "base/statistics/statistics.h"
#include "core/machine/machine.h"
#include "core/plan/protocol.h"
#include "core/task/task.h"
#include "measure/worker/cuda/handles.h"
#include "measure/worker/cuda/kernels.h"
#include "measure/worker/cuda/message.h"
#include "measure/worker/cuda/nvrtc.h"
#include "measure/worker/roles.h"

namespace kernelpro {

namespace {

class Ceiling {
 public:
  static Result<Ceiling> make(const CudaDriver& cu, TrustedKernels* kernels) {
    Ceiling ceiling(cu, kernels);
    for (CudaEvent* event : {&ceiling.begin_, &ceiling.end_}) {
      KP_ASSIGN(*event, make_event(cu));
    }
    return ceiling;
  }

  // Read plus written bytes per second: the better of our copy kernel and the driver's copy.
  Result<double> copy_bandwidth() {
    std::size_t free_bytes = 0, total = 0;
    KP_CUDA_TRY(cu_.MemGetInfo(&free_bytes, &total));
    const std::uint64_t bytes = std::min<std::uint64_t>(1ull << 30, free_bytes / 4) / 4096 * 4096;
    const Result<DeviceMemory> from = allocate(cu_, bytes);
    const Result<DeviceMemory> to = from ? allocate(cu_, bytes) : Result<DeviceMemory>();
    if (!from || !to) return tl::unexpected<Error>(from ? to.error() : from.error());
    KP_CUDA_TRY(kernels_->run("poison", bytes / 4, from->get(), std::uint64_t{1}, bytes / 4));
    double best = INFINITY;
    const auto attempt = [&](const std::function<CUresult()>& submit) -> Result<void> {
      KP_ASSIGN(const double us, median_us(submit));
      best = std::min(best, us);
      return {};
    };
    KP_TRY(attempt([&] { return cu_.MemcpyDtoDAsync(to->get(), from->get(), bytes, nullptr); }));
    const std::uint64_t words = bytes / 16;
    const auto sms = static_cast<unsigned>(kernels_->multiprocessors());
    for (const unsigned blocks : {sms * 4, sms * 8, sms * 16, static_cast<unsigned>(words / 512)}) {
      for (const unsigned threads : {256u, 512u}) {
        KP_TRY(attempt([&] {
          return kernels_->run_on(nullptr, "copy", blocks, threads, 0u, from->get(), to->get(),
                                  words);
        }));
      }
    }
    return 2.0 * static_cast<double>(bytes) / (best * 1e-6);
  }

  Result<double> fma_rate() {
    const auto blocks = static_cast<unsigned>(kernels_->multiprocessors()) * 8;
    constexpr unsigned kThreads = 256;
    constexpr int kRounds = 20000;
    KP_ASSIGN(const DeviceMemory out, allocate(cu_, blocks * kThreads * sizeof(float)));
    const Result<double> us = median_us([&] {
      return kernels_->run_on(nullptr, "multiply_add", blocks, kThreads, 0u, out.get(),
                              int{kRounds}, 0.999f, 0.001f);
    });
    if (!us) return us;
    return 2.0 * 16 * kRounds * blocks * kThreads / (*us * 1e-6);
  }

  // bf16 8192^3 on random data, as zeros run faster. 0 without a cuBLAS that works.
  Result<double> tensor_rate() {
    void* library = nullptr;
    for (const std::string& path : cuda_library_paths("cublas")) {
      if (library == nullptr) library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    }
    if (library == nullptr) return 0.0;
    using Create = int (*)(void**);
    using Gemm = int (*)(void*, int, int, int, int, int, const void*, const void*, int, int,
                         const void*, int, int, const void*, void*, int, int, int, int);
    const auto create = reinterpret_cast<Create>(::dlsym(library, "cublasCreate_v2"));
    const auto gemm = reinterpret_cast<Gemm>(::dlsym(library, "cublasGemmEx"));
    void* handle = nullptr;
    if (create == nullptr || gemm == nullptr || create(&handle) != 0) return 0.0;
    constexpr int kN = 8192;
    constexpr int kBf16 = 14, kCompute32F = 68, kDefaultAlgorithm = -1, kNoTranspose = 0;
    constexpr std::uint64_t kElements = std::uint64_t{kN} * kN;
    DeviceMemory a, b, c;
    for (DeviceMemory* memory : {&a, &b, &c}) {
      KP_ASSIGN(*memory, allocate(cu_, kElements * 2));
    }
    kp::DrawSpec spec{};
    spec.kind = 1;
    spec.dtype = 2;
    spec.b = 1;
    for (const CUdeviceptr p : {a.get(), b.get()}) {
      const kp::Key key = {{static_cast<unsigned>(p), static_cast<unsigned>(p >> 32)}};
      KP_CUDA_TRY(kernels_->run("draw", kElements, p, spec, key, std::uint64_t{0},
                                std::uint64_t{kElements}));
    }
    const float one = 1, zero = 0;
    const Result<double> us = median_us([&] {
      const int status = gemm(
          handle, kNoTranspose, kNoTranspose, kN, kN, kN, &one, reinterpret_cast<void*>(a.get()),
          kBf16, kN, reinterpret_cast<void*>(b.get()), kBf16, kN, &zero,
          reinterpret_cast<void*>(c.get()), kBf16, kN, kCompute32F, kDefaultAlgorithm);
      return status == 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
    });
    return us ? 2.0 * kN * kN * kN / (*us * 1e-6) : 0.0;
  }

 private:
  Ceiling(const CudaDriver& cu, TrustedKernels* kernels) : cu_(cu), kernels_(kernels) {}

  // Median of 15 after 3 warm-ups.
  Result<double> median_us(const std::function<CUresult()>& submit) {
    std::vector<double> times;
    for (int i = 0; i < 18; ++i) {
      KP_CUDA_TRY(cu_.EventRecord(begin_.get(), nullptr));
      KP_CUDA_TRY(submit());
      KP_CUDA_TRY(cu_.EventRecord(end_.get(), nullptr));
      KP_CUDA_TRY(cu_.EventSynchronize(end_.get()));
      float ms = 0;
      KP_CUDA_TRY(cu_.EventElapsedTime(&ms, begin_.get(), end_.get()));
      if (i >= 3) times.push_back(static_cast<double>(ms) * 1e3);
    }
    return median(times);
  }

  const CudaDriver& cu_;
  TrustedKernels* kernels_;
  CudaEvent begin_, end_;
};

Result<Machine> measure() {
  KP_ASSIGN(CudaContext context, CudaContext::open());
  const CudaDriver& cu = **cuda_driver();
  KP_ASSIGN(TrustedKernels kernels, TrustedKernels::load(cu, context));
  KP_ASSIGN(Ceiling ceiling, Ceiling::make(cu, &kernels));
  const Result<double> copy = ceiling.copy_bandwidth();
  const Result<double> fma = ceiling.fma_rate();
  const Result<double> tensor = ceiling.tensor_rate();
  for (const auto* result : {&copy, &fma, &tensor}) {
    if (!*result) return tl::unexpected<Error>(result->error());
  }
  int driver = 0;
  cu.DriverGetVersion(&driver);
  Machine m;
  m.target = target_name(TargetKind::kCuda);
  m.name = context.name();
  m.versions = "driver CUDA " + std::to_string(driver / 1000) + "." +
               std::to_string(driver % 1000 / 10) + ", NVRTC " + nvrtc_version().value_or("none");
  m.parallel_units = kernels.multiprocessors();
  m.arch = context.arch();
  m.l2_bytes = context.attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  // Double data rate: two transfers per clock.
  m.theoretical_bytes_per_s = 2e3 * context.attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) *
                              context.attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8.0;
  m.ceilings.copy_bytes_per_s = *copy;
  m.ceilings.fma_flops_per_s = *fma;
  m.ceilings.tensor_flops_per_s = *tensor;
  m.ceilings.how =
      "copy of 1 GiB, best of kernel and driver; 16 chains of FFMA per thread; bf16 8192^3 through "
      "cuBLAS";
  return m;
}

}  // namespace

int cuda_ceilings(int, char**) {
  WorkerChannel channel;
  while (channel.next()) {
    const Result<Machine> machine = measure();
    if (!machine) {
      channel.answer_error(machine.error());
    } else {
      channel.answer({{"machine", *parse_json(machine_to_json(*machine))}});
    }
  }
  return 0;
}

}  // namespace kernelpro

#endif
