// SPDX-License-Identifier: Apache-2.0
#if KERNELPRO_HAVE_CUDA

#include "measure/worker/cuda/memory.h"

#include <algorithm>

#include "measure/worker/testing/fake_gpu.h"

namespace kernelpro::testing {
namespace {

constexpr std::uint64_t kBytes = 2u << 20;

struct Memory : FakeContext {
  void SetUp() override {
    FakeContext::SetUp();
    if (IsSkipped()) return;
  }
  void TearDown() override { FakeContext::TearDown(); }
  Result<AddressRange> range(std::uint64_t base = kCandidateBase) {
    return AddressRange::reserve(cu(), base, 64u << 20);
  }
};

TEST_F(Memory, IsAtTheAgreedAddressesAndSharedThroughADescriptor) {
  auto mine = range();
  ASSERT_TRUE(mine) << mine.error().text();
  EXPECT_EQ(mine->base(), kCandidateBase);
  const auto memory = PhysicalMemory::create(cu(), 0, kBytes);
  ASSERT_TRUE(memory);
  ASSERT_TRUE(mine->map(0, kCandidateBase + kBytes, kBytes, memory->handle()));
  const auto fd = memory->share();
  ASSERT_TRUE(fd);
  const auto theirs = PhysicalMemory::import(cu(), fd->get(), kBytes);
  ASSERT_TRUE(theirs);
  auto elsewhere = range(kReferenceBase);
  ASSERT_TRUE(elsewhere);
  ASSERT_TRUE(elsewhere->map(0, kReferenceBase, kBytes, theirs->handle()));
  *at<int>(kCandidateBase + kBytes + 12) = 7;
  EXPECT_EQ(*at<int>(kReferenceBase + 12), 7);
}

TEST_F(Memory, AtOtherAddressesIsAFaultOfTheMachine) {
  fake::misplace_below(~0ull);
  const auto misplaced = range();
  ASSERT_FALSE(misplaced);
  EXPECT_EQ(misplaced.error().kind, ErrorKind::kEnvironment);
  EXPECT_TRUE(contains(misplaced.error().message, "0x200000000000")) << misplaced.error().message;
  EXPECT_TRUE(range(0)) << "any address will do";
}

// As the driver of an H200 does once a program has given back a range of addresses.
TEST_F(Memory, IsLargerThanTheHolesThatTheDriverFills) {
  fake::misplace_below(1ull << 30);
  auto first = range();
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_EQ(first->base(), kCandidateBase);
  first = AddressRange();
  EXPECT_TRUE(range()) << "all of it was given back";
}

// A range that was moved from must not free what its new owner holds.
TEST_F(Memory, MovesWithItsOwner) {
  auto first = range();
  ASSERT_TRUE(first);
  auto memory = PhysicalMemory::create(cu(), 0, kBytes);
  ASSERT_TRUE(memory);
  ASSERT_TRUE(first->map(0, kCandidateBase, kBytes, memory->handle()));
  AddressRange second = std::move(*first);
  PhysicalMemory other = std::move(*memory);
  first = range(kReferenceBase);
  *at<int>(kCandidateBase) = 3;
  EXPECT_EQ(other.bytes(), kBytes);
  second.unmap(kCandidateBase);
  second.unmap(kCandidateBase);           // nothing is there any more
  second.unmap(kCandidateBase + kBytes);  // nor ever was
  EXPECT_TRUE(second.map(0, kCandidateBase, kBytes, other.handle()));
}

// A range must not keep a half-made mapping: no other fits at its address.
TEST_F(Memory, CanBeMappedAgainAfterAFailure) {
  auto mine = range();
  const auto memory = PhysicalMemory::create(cu(), 0, kBytes);
  ASSERT_TRUE(mine && memory);
  fake::fail("MemSetAccess", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_FALSE(mine->map(0, kCandidateBase, kBytes, memory->handle()));
  EXPECT_TRUE(mine->map(0, kCandidateBase, kBytes, memory->handle()));
}

TEST_F(Memory, IsReadOnlyWhereTheDriverCanDoThat) {
  for (const bool works : {true, false}) {
    if (!works) fake::refuse_read_only();
    auto mine = range();
    const auto memory = PhysicalMemory::create(cu(), 0, kBytes);
    ASSERT_TRUE(mine && memory);
    const Result<bool> read_only = mine->map_read_only(0, kCandidateBase, kBytes, memory->handle());
    ASSERT_TRUE(read_only) << read_only.error().text();
    EXPECT_EQ(*read_only, works);
    EXPECT_EQ(*at<int>(kCandidateBase), 0) << "it can be read";
    mine->unmap(kCandidateBase);
    EXPECT_TRUE(mine->map(0, kCandidateBase, kBytes, memory->handle())) << "and mapped again";
    *at<int>(kCandidateBase) = 1;
  }
}

TEST_F(Memory, IsShortWithoutALeak) {
  fake::set_memory(5 * kBytes / 2);
  const auto first = PhysicalMemory::create(cu(), 0, kBytes);
  ASSERT_TRUE(first);
  const auto second = PhysicalMemory::create(cu(), 0, 2 * kBytes);
  ASSERT_FALSE(second);
  EXPECT_TRUE(contains(second.error().message, "OUT_OF_MEMORY")) << second.error().message;
  EXPECT_EQ(fake::alive(), "1 context, 1 shared memory handle");
}

TEST_F(Memory, ScratchIsBehindEveryAddressOfALayout) {
  // Larger than all chunks together.
  const AddressLayout layout =
      make_layout({100, 300u << 20, 0, 5u << 20}, 70u << 20, kBytes, kCandidateBase);
  const auto scratch = ScratchMapping::make(cu(), 0, layout);
  ASSERT_TRUE(scratch) << scratch.error().text();
  for (const AddressLayout::Slot& slot : layout.slots) {
    char last = 1;
    EXPECT_EQ(cu().MemcpyDtoH(&last, slot.mapping + slot.mapping_bytes - 1, 1), CUDA_SUCCESS);
    EXPECT_EQ(cu().MemcpyDtoH(&last, slot.mapping, 1), CUDA_SUCCESS);
    // Overruns must fault.
    EXPECT_NE(cu().MemcpyDtoH(&last, slot.mapping + slot.mapping_bytes, 1), CUDA_SUCCESS);
    EXPECT_NE(cu().MemcpyDtoH(&last, slot.mapping - 1, 1), CUDA_SUCCESS);
  }
}

TEST_F(Memory, ScratchGivesAllBackWhateverFails) {
  const AddressLayout layout = toy_layout(1000, 9u << 20);
  with_every_call_failing([&] { return ScratchMapping::make(cu(), 0, layout).has_value(); });
}

TEST_F(Memory, AContextThatCannotBeOpenedSaysWhy) {
  with_every_call_failing([&] { return CudaContext::open().has_value(); });
  fake::fail("DevicePrimaryCtxRetain", CUDA_ERROR_ECC_UNCORRECTABLE);
  const auto failed = CudaContext::open();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::kEnvironment);
  EXPECT_TRUE(contains(failed.error().message, "ECC_UNCORRECTABLE")) << failed.error().message;
}

}  // namespace
}  // namespace kernelpro::testing

#endif
