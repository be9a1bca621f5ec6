// SPDX-License-Identifier: Apache-2.0
// C = A B in bf16 with CuTe, in the host form: TMA loads tiles into a ring of stages, and two
// warpgroups multiply them. For the large case of bench/planted/gemm_bf16: sizes are multiples of
// the tile. Compile times are compared with gemm.cu, the same product in the plan form.
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
                                       Shape<TileN, TileK, Int<kStages>>{}));
using Mma = decltype(make_tiled_mma(
    SM90_64x256x16_F32BF16BF16_SS<GMMA::Major::K, GMMA::Major::MN>{}, Layout<Shape<_2, _1, _1>>{}));

struct Storage {
  alignas(1024) ArrayEngine<Element, cosize_v<LayoutA>> a;
  alignas(1024) ArrayEngine<Element, cosize_v<LayoutB>> b;
  uint64_t full[kStages], empty[kStages];
};

template <class CopyA, class CopyB>
__global__ void __launch_bounds__(384) multiply(const __grid_constant__ CopyA copy_a,
                                                const __grid_constant__ CopyB copy_b, Element* c) {
  extern __shared__ __align__(1024) char memory[];
  Storage& shared = *reinterpret_cast<Storage*>(memory);
  Tensor sa = make_tensor(make_smem_ptr(shared.a.begin()), LayoutA{});
  Tensor sb = make_tensor(make_smem_ptr(shared.b.begin()), LayoutB{});

  const auto at = make_coord(blockIdx.y, blockIdx.x, _);
  const auto tile = Shape<TileM, TileN, TileK>{};
  Tensor ga = local_tile(copy_a.get_tma_tensor(make_shape(M, K)), tile, at, Step<_1, X, _1>{});
  Tensor gb = local_tile(copy_b.get_tma_tensor(make_shape(N, K)), tile, at, Step<X, _1, _1>{});
  Tensor gc = local_tile(make_tensor(make_gmem_ptr(c), make_shape(M, N), make_stride(N, _1{})),
                         tile, at, Step<_1, _1, X>{});
  auto [from_a, to_a] =
      tma_partition(copy_a, _0{}, Layout<_1>{}, group_modes<0, 2>(sa), group_modes<0, 2>(ga));
  auto [from_b, to_b] =
      tma_partition(copy_b, _0{}, Layout<_1>{}, group_modes<0, 2>(sb), group_modes<0, 2>(gb));
  const int tiles = size<1>(from_a);

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
        copy(copy_a.with(shared.full[s]), from_a(_, k), to_a(_, s));
        copy(copy_b.with(shared.full[s]), from_b(_, k), to_b(_, s));
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
  for (int i = 0; i < size(sum); ++i) out(i) = Element(sum(i));
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  static_assert(K % 8 == 0 && N % 8 == 0, "TMA wants rows of whole 16 bytes");
  const auto* a = reinterpret_cast<const Element*>(args.a);
  const auto* b = reinterpret_cast<const Element*>(args.b);
  const auto copy_a =
      make_tma_atom(SM90_TMA_LOAD{}, make_tensor(a, make_shape(M, K), make_stride(K, _1{})),
                    LayoutA{}(_, _, _0{}), Shape<TileM, TileK>{});
  const auto copy_b =
      make_tma_atom(SM90_TMA_LOAD{}, make_tensor(b, make_shape(N, K), make_stride(_1{}, N)),
                    LayoutB{}(_, _, _0{}), Shape<TileN, TileK>{});
  auto* kernel = &multiply<decltype(copy_a), decltype(copy_b)>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Storage));
  kernel<<<dim3(N / TileN{}, M / TileM{}), 384, sizeof(Storage), stream>>>(
      copy_a, copy_b, reinterpret_cast<Element*>(args.c));
}
