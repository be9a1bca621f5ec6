// SPDX-License-Identifier: Apache-2.0
#include "profile/import/device.h"

#include <gtest/gtest.h>

namespace kernelpro {
namespace {

double nominal_bytes(const std::string& name) { return listed_device(name).bytes_per_s; }

TEST(Devices, NamesAsDriversAndPeopleWriteThem) {
  EXPECT_EQ(listed_device("NVIDIA H100 80GB HBM3").arch(), "sm_90");
  EXPECT_DOUBLE_EQ(nominal_bytes("NVIDIA H100 80GB HBM3"), 3.35e12);
  EXPECT_DOUBLE_EQ(nominal_bytes("NVIDIA H100 PCIe"), 2.04e12);
  EXPECT_DOUBLE_EQ(nominal_bytes("H200"), 4.8e12);
  EXPECT_DOUBLE_EQ(nominal_bytes("NVIDIA A100-SXM4-80GB"), 2.04e12);
  EXPECT_DOUBLE_EQ(nominal_bytes("NVIDIA A100-SXM4-40GB"), 1.555e12);
  EXPECT_DOUBLE_EQ(nominal_bytes("NVIDIA A10"), 0.6e12);
  EXPECT_DOUBLE_EQ(nominal_bytes("NVIDIA GeForce RTX 4090"), 1.008e12);
  EXPECT_DOUBLE_EQ(nominal_bytes("rtx4090"), 1.008e12);
  EXPECT_EQ(listed_device("NVIDIA B200").arch(), "sm_100");
  EXPECT_EQ(listed_device("Tesla T4").arch(), "sm_75");
}

TEST(Devices, NamesThatOnlyLookAlike) {
  EXPECT_EQ(listed_device("NVIDIA RTX A4000").arch(), "");
  EXPECT_EQ(listed_device("NVIDIA T400").arch(), "");
  EXPECT_EQ(listed_device("NVIDIA GeForce RTX 4090 Laptop GPU").arch(), "");
  EXPECT_EQ(listed_device("").arch(), "");
}

TEST(Devices, CeilingsAreBelowThePeaksAndLabelled) {
  const Machine machine = nominal_machine(listed_device("H200"));
  EXPECT_NEAR(machine.ceilings.copy_bytes_per_s, 4.3e12, 0.05e12);
  EXPECT_NEAR(machine.ceilings.tensor_flops_per_s, 790e12, 10e12);
  EXPECT_EQ(machine.parallel_units, 132);
  EXPECT_NE(machine.ceilings.how.find("nominal"), std::string::npos);
}

TEST(Devices, AnUnlistedOneByItsClocks) {
  DeviceFacts facts;
  facts.name = "NVIDIA Something 9000";
  facts.major = 8;
  facts.minor = 6;
  facts.multiprocessors = 28;
  facts.clock_hz = 1.777e9;
  facts.bytes_per_s = 360e9;
  const Machine machine = nominal_machine(facts);
  EXPECT_DOUBLE_EQ(machine.ceilings.copy_bytes_per_s, 0.9 * 360e9);
  EXPECT_NEAR(machine.ceilings.fma_flops_per_s, 0.93 * 12.74e12, 0.02e12);
  EXPECT_EQ(machine.ceilings.tensor_flops_per_s, 0);
}

TEST(Devices, APartOfAChip) {
  DeviceFacts mig = listed_device("NVIDIA H100 80GB HBM3");
  mig.multiprocessors = 66;
  const double whole =
      nominal_machine(listed_device("NVIDIA H100 80GB HBM3")).ceilings.fma_flops_per_s;
  EXPECT_DOUBLE_EQ(nominal_machine(mig).ceilings.fma_flops_per_s, whole / 2);
}

TEST(Devices, CeilingsGiveFloorsAndKeepWhatIsThere) {
  Evidence e;
  e.set("task.compulsory_bytes", 4.32e9, Level::kTiming, "given");
  e.set("timing.median", 2000, Level::kTiming, "ncu");
  e.set("ceiling.fma_rate", 1e12, Level::kTiming, "ceilings");
  add_ceilings(nominal_machine(listed_device("H200")), "nominal peaks", &e);
  EXPECT_DOUBLE_EQ(*e.get("ceiling.fma_rate"), 1e12);
  EXPECT_NEAR(*e.get("roofline.memory_floor"), 1000, 1e-6);
  EXPECT_EQ(e.find("ceiling.copy_bandwidth")->source, "nominal peaks");
  EXPECT_NEAR(*e.get("roofline.achieved_bandwidth"), 2.16e12, 1e6);
}

}  // namespace
}  // namespace kernelpro
