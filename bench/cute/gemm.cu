// SPDX-License-Identifier: Apache-2.0
// C = A B in bf16 with CuTe, in the plan form: TMA loads tiles into a ring of stages, and two
// warpgroups multiply them. For bench/planted/gemm_bf16; gemm_host.cu is the same in the host form.
// Together they show the compile time of a candidate that uses CuTe.
#include <cutlass/arch/barrier.h>
#include <cutlass/arch/reg_reconfig.h>

#include <cute/tensor.hpp>

#include "task.h"

using namespace cute;

using Element = cutlass::bfloat16_t;
using Full = cutlass::arch::ClusterTransactionBarrier;
using Empty = cutlass::arch::ClusterBarrier;

constexpr int kStages = 4;
using TileM = Int<128>;
using TileN = Int<256>;
using TileK = Int<64>;

// A is contiguous along k, B along n.
using LayoutA = decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<Element>{},
                                       Shape<TileM, TileK, Int<kStages>>{}));
using LayoutB = decltype(tile_to_shape(GMMA::Layout_MN_SW128_Atom<Element>{},
                                       Shape<TileN, TileK, Int<kStages>>{}, Step<_2, _1, _3>{}));
using Mma = decltype(make_tiled_mma(
    SM90_64x256x16_F32BF16BF16_SS<GMMA::Major::K, GMMA::Major::MN>{}, Layout<Shape<_2, _1, _1>>{}));

struct Storage {
  alignas(1024) ArrayEngine<Element, cosize_v<LayoutA>> a;
  alignas(1024) ArrayEngine<Element, cosize_v<LayoutB>> b;
  uint64_t full[kStages], empty[kStages];
};

__global__ void __launch_bounds__(384)
    multiply(const __grid_constant__ kp::TensorMap map_a,
             const __grid_constant__ kp::TensorMap map_b, __nv_bfloat16* c) {
  extern __shared__ __align__(1024) char memory[];
  Storage& shared = *reinterpret_cast<Storage*>(memory);
  Tensor sa = make_tensor(make_smem_ptr(shared.a.begin()), LayoutA{});
  Tensor sb = make_tensor(make_smem_ptr(shared.b.begin()), LayoutB{});
  Tensor gc = local_tile(make_tensor(make_gmem_ptr(reinterpret_cast<Element*>(c)), make_shape(M, N),
                                     make_stride(N, _1{})),
                         Shape<TileM, TileN>{}, make_coord(blockIdx.y, blockIdx.x));
  constexpr int tiles = (K + TileK{} - 1) / TileK{};  // TMA reads 0 out of bounds

  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      Full::init(&shared.full[s], 1);
      Empty::init(&shared.empty[s], 2);
    }
    cutlass::arch::fence_barrier_init();
  }
  __syncthreads();

  if (threadIdx.x < 128) {  // the producer's warpgroup
    cutlass::arch::warpgroup_reg_dealloc<40>();
    if (threadIdx.x == 0) {
      constexpr int bytes = sizeof(Element) * (TileM{} + TileN{}) * TileK{};
      for (int k = 0; k < tiles; ++k) {
        const int s = k % kStages;
        Empty::wait(&shared.empty[s], (k / kStages + 1) % 2);
        Full::arrive_and_expect_tx(&shared.full[s], bytes);
        const auto hint = static_cast<uint64_t>(TMA::CacheHintSm90::EVICT_NORMAL);
        SM90_TMA_LOAD_2D::copy(&map_a, &shared.full[s], hint, &sa(0, 0, s), k * TileK{},
                               blockIdx.y * TileM{});
        // A box is as wide as the swizzle: 64 columns.
        for (int n = 0; n < TileN{}; n += 64) {
          SM90_TMA_LOAD_2D::copy(&map_b, &shared.full[s], hint, &sb(n, 0, s),
                                 blockIdx.x * TileN{} + n, k * TileK{});
        }
      }
    }
    return;
  }

  cutlass::arch::warpgroup_reg_alloc<232>();
  Mma mma;
  auto mine = mma.get_thread_slice(threadIdx.x - 128);
  Tensor fa = mine.make_fragment_A(mine.partition_A(sa));
  Tensor fb = mine.make_fragment_B(mine.partition_B(sb));
  Tensor out = mine.partition_C(gc);
  Tensor sum = mine.make_fragment_C(partition_fragment_C(mma, Shape<TileM, TileN>{}));
  clear(sum);
  for (int k = 0; k < tiles; ++k) {
    const int s = k % kStages;
    Full::wait(&shared.full[s], k / kStages % 2);
    warpgroup_fence_operand(sum);
    warpgroup_arrive();
    gemm(mma, fa(_, _, _, s), fb(_, _, _, s), sum);
    warpgroup_commit_batch();
    // The previous product has finished and no longer reads its stage.
    warpgroup_wait<1>();
    if (k > 0 && threadIdx.x % 128 == 0) Empty::arrive(&shared.empty[(k - 1) % kStages]);
  }
  warpgroup_wait<0>();
  warpgroup_fence_operand(sum);
  const Tensor all = local_tile(make_identity_tensor(make_shape(M, N)), Shape<TileM, TileN>{},
                                make_coord(blockIdx.y, blockIdx.x));
  const Tensor at = mine.partition_C(all);
  for (int i = 0; i < size(sum); ++i) {
    if (elem_less(at(i), make_shape(M, N))) out(i) = Element(sum(i));
  }
}

KP_LAUNCH(multiply, kp::dim(ceil_div(N, TileN{}), ceil_div(M, TileM{})), kp::dim(384),
          sizeof(Storage),
          kp::tensor_map(arg::a, kp::sizes(K, M), kp::box(64, 128), kp::Swizzle::k128),
          kp::tensor_map(arg::b, kp::sizes(N, K), kp::box(64, 64), kp::Swizzle::k128), arg::c)
