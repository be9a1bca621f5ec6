// SPDX-License-Identifier: Apache-2.0
// The role cuda-judge, from its supervisor's end of the channel.
#if KERNELPRO_HAVE_CUDA

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/plan/protocol.h"
#include "core/task/inputs.h"
#include "core/task/key.h"
#include "core/task/shapes.h"
#include "measure/worker/roles.h"
#include "measure/worker/testing/fake_gpu.h"
#include "measure/worker/testing/role.h"

namespace kernelpro::testing {
namespace {

constexpr int kElements = 100;

struct Judges : FakeGpu {
  Judges() : FakeGpu(Needs::kJudgeKernels) {}
  void SetUp() override {
    FakeGpu::SetUp();
    if (IsSkipped()) return;
    fake::define("reference", {{8, 8}, [](fake::Launch& launch) {
                                 const float* x = launch.memory<float>(0, kElements);
                                 double* y = launch.memory<double>(1, kElements);
                                 for (int i = 0; y != nullptr && i < kElements; ++i)
                                   y[i] = 3 * x[i];
                               }});
    fake::define("crash", {{8, 8}, [](fake::Launch& launch) { launch.bytes_at(64, 1); }});
    cubin = join(folder.path(), "r.cubin");
    ASSERT_TRUE(write_file(cubin, fake::image({"reference", "crash"})));
    role = std::make_unique<RoleThread>(cuda_judge);
  }
  void TearDown() override {
    const int status = role ? role->end() : 0;
    EXPECT_EQ(status, 0);
    role.reset();
    FakeGpu::TearDown();
  }

  Json ask(const char* what, Json more = Json::object()) {
    Json message = {{"do", what}, {"case", "toy"}, {"set", 0}};
    for (const auto& [name, value] : more.items()) message[name] = value;
    return role->ask(message);
  }
  Json open(int sets = 2) {
    return ask(
        "open",
        {{"tensors", tensors_json(task)}, {"workspace", 64}, {"sets", sets}, {"sharing", 0}});
  }
  Json draw(int set = 0, unsigned seed = 5) {
    return ask("draw", {{"set", set},
                        {"key", key_to_text(key_of(seed))},
                        {"specs", *parse_json(draw_specs_to_json(
                                      {draw_spec(task.tensors[0]), draw_spec(task.tensors[1])}))}});
  }
  Json reference(const char* name = "reference", int set = 0) {
    return ask("reference", {{"set", set},
                             {"cubin", cubin},
                             {"again", true},
                             {"plan", json_of(in_a_row({kernel(name, {tensor(0), tensor(1)})}))}});
  }
  // The bytes of a tensor or its expected result.
  std::string fetch(int index, bool expected) {
    const std::string path = join(folder.path(), "fetched");
    const Json answer = ask("fetch", {{"tensor", index}, {"expected", expected}, {"path", path}});
    return ok(answer) ? read_file(path).value_or("") : error(answer);
  }

  const Task task = two_vectors(kElements);
  const TempDir folder;
  std::string cubin;
  std::unique_ptr<RoleThread> role;
};

TEST_F(Judges, FillAndCompareASet) {
  const Json hello = ask("hello");
  EXPECT_EQ(hello["uuid"], "GPU-00112233-4455-6677-8899-aabbccddeeff");
  EXPECT_EQ(hello["granularity"], 2u << 20);
  EXPECT_GT(hello["free_bytes"].get<std::uint64_t>(), 1u << 30);
  EXPECT_GE(hello["total_bytes"], hello["free_bytes"]);
  const Json opened = open();
  ASSERT_TRUE(ok(opened)) << opened;
  const auto layout = layout_from_json(dump_json(opened["layout"]));
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->slots.size(), 3u);
  EXPECT_EQ(layout->base, kCandidateBase);
  EXPECT_EQ(opened["reference_layout"]["base"], kReferenceBase);
  ASSERT_TRUE(ok(draw()));
  const Json computed = reference();
  ASSERT_TRUE(ok(computed)) << computed;
  EXPECT_TRUE(computed["agrees"].get<bool>());
  const Json sealed = ask("seal", {{"typical", true}});
  ASSERT_EQ(sealed["outputs"].size(), 1u);
  std::vector<float> x(kElements);
  draw_inputs(task.tensors[0], 0, key_of(5), 0, kElements, x.data());
  double low = 3 * x[0], high = low, squares = 0;
  for (const float v : x) {
    const double tripled = 3 * v;
    low = std::min(low, tripled);
    high = std::max(high, tripled);
    squares += tripled * tripled;
  }
  EXPECT_EQ(sealed["outputs"][0]["low"].get<double>(), low);
  EXPECT_EQ(sealed["outputs"][0]["high"].get<double>(), high);
  EXPECT_NEAR(sealed["outputs"][0]["rms"].get<double>(), std::sqrt(squares / kElements), 1e-9);
  EXPECT_EQ(fetch(1, true).size(), 8u * kElements) << "doubles";
  EXPECT_EQ(fetch(0, false), std::string(reinterpret_cast<char*>(x.data()), 4 * kElements));
}

// As the host does it, and errors in the norm as the host measures them.
TEST_F(Judges, ReshapeAndMeasureDeviations) {
  ASSERT_TRUE(ok(open()));
  kp::ShapeSpec spec{};
  spec.period = spec.depth = 4;
  spec.row = 10;
  spec.inner = spec.channels = 1;
  spec.count = kElements;
  for (const int shape : {kp::kHeavy, kp::kRepeated, kp::kRows, kp::kTop, kp::kGrow, kp::kFew,
                          kp::kJitter, kp::kFractions, kp::kOutlier, kp::kSlabs}) {
    ASSERT_TRUE(ok(draw()));
    spec.shape = shape;
    spec.factor = shape == kp::kOutlier || shape == kp::kSlabs ? 2 : 0;
    std::vector<char> data(4 * kElements);
    draw_inputs(task.tensors[0], 0, key_of(5), 0, kElements, data.data());
    const bool changed = reshape(spec, kp::shape_key(77, 0), &data);
    EXPECT_EQ(changed, shape != kp::kJitter && shape != kp::kFractions) << shape;
    const Json specs = *parse_json(shape_specs_to_json({spec, kp::ShapeSpec{}}));
    const Json reshaped = ask("reshape", {{"seed", 77}, {"specs", specs}});
    ASSERT_TRUE(ok(reshaped));
    EXPECT_EQ(reshaped["changed"].get<bool>(), changed) << shape;
    EXPECT_EQ(fetch(0, false), std::string(data.begin(), data.end())) << shape;
  }
  ASSERT_TRUE(ok(reference()));
  ASSERT_TRUE(ok(ask("narrow")));
  ASSERT_TRUE(ok(ask("seal", {{"typical", false}})));
  const Json near = ask("deviations");
  ASSERT_EQ(near["outputs"].size(), 1u) << near;
  EXPECT_LT(near["outputs"][0]["norm"], 1e-7) << "doubles as floats";
  spec.shape = kp::kPowerOfTwo;
  spec.factor = 1.5f;
  ASSERT_TRUE(
      ok(ask("reshape", {{"seed", 1}, {"specs", *parse_json(shape_specs_to_json({spec, spec}))}})));
  ASSERT_TRUE(ok(reference()));
  ASSERT_TRUE(ok(ask("seal", {{"typical", false}})));
  EXPECT_NEAR(ask("deviations")["outputs"][0]["norm"].get<double>(), 1 / 3.0, 1e-6);
}

TEST_F(Judges, PoisonAnewOnlyWhereAllIsRight) {
  ASSERT_TRUE(ok(open()));
  ASSERT_TRUE(ok(draw()));
  ASSERT_TRUE(ok(reference()));
  ASSERT_TRUE(ok(ask("seal")));
  constexpr std::uint64_t kFinite = 2ull << 62;  // this kind of poison has no NaN
  ASSERT_TRUE(ok(ask("poison", {{"keys", {{0, kFinite}}}, {"slack", true}})));
  const std::string poisoned = fetch(1, false);
  const Json wrong =
      ask("verify", {{"sets", {0}}, {"intrusions", true}, {"then_poison", {{0, 10}}}});
  EXPECT_EQ(wrong["sets"][0]["outputs"][0]["bad"], kElements);
  EXPECT_EQ(wrong["sets"][0]["outputs"][0]["unwritten"], kElements);
  EXPECT_TRUE(wrong["sets"][0]["intrusions"].empty());
  EXPECT_EQ(fetch(1, false), poisoned) << "what is wrong stays, to be explained";
  // A tolerance that admits everything.
  ASSERT_TRUE(ok(ask("tolerances", {{"tolerances", {0, 1e300}}})));
  const Json right = ask("verify", {{"sets", {0}}, {"then_poison", {{0, 10}}}});
  EXPECT_EQ(right["sets"][0]["outputs"][0]["bad"], 0) << right;
  EXPECT_NE(fetch(1, false), poisoned);
}

TEST_F(Judges, ShareOnlyWhatIsASetsOwn) {
  ASSERT_TRUE(ok(open()));
  EXPECT_EQ(ask("share", {{"slots", {0, 1, 2}}, {"expected", false}})["own"],
            Json::array({true, true, true}));
  EXPECT_EQ(role->fds().size(), 3u);
  EXPECT_EQ(ask("share", {{"set", 1}, {"slots", {2, 1}}, {"expected", false}})["own"],
            Json::array({false, true}));
  EXPECT_EQ(role->fds().size(), 1u);
  ask("share", {{"slots", {1}}, {"expected", true}});
  EXPECT_EQ(role->fds().size(), 1u);
  EXPECT_FALSE(ok(ask("share", {{"slots", {0}}, {"expected", true}})))
      << "an input is not expected";
  for (const Json& slot : {Json(3), Json(-1), Json("x"), Json(nullptr)}) {
    EXPECT_EQ(error(ask("share", {{"slots", Json::array({slot})}})), "no such slot");
    EXPECT_TRUE(role->fds().empty());
  }
}

TEST_F(Judges, RefuseWhatIsNotThere) {
  EXPECT_EQ(error(ask("dance")), "unknown command");
  for (const char* what :
       {"close",  "share",  "draw",  "reference", "seal",    "broken",    "poison",
        "verify", "window", "fetch", "disturb",   "restore", "vary",      "tolerances",
        "lean",   "admit",  "least", "reshape",   "narrow",  "deviations"}) {
    EXPECT_EQ(error(ask(what)), "no such case or set") << what;
  }
  ASSERT_TRUE(ok(open()));
  for (const int set : {-1, 2}) EXPECT_EQ(error(draw(set)), "no such case or set");
  EXPECT_EQ(error(ask("verify", {{"sets", {0, 2}}})), "no such set");
  EXPECT_EQ(error(ask("verify", {{"sets", {"a"}}})), "no such set");
  EXPECT_EQ(error(ask("poison", {{"keys", {{2, 1}}}})), "no such set");
  EXPECT_EQ(error(ask("poison", {{"keys", {{0, -1}}}})), "no such set") << "a key is natural";
  EXPECT_EQ(error(ask("draw", {{"specs", {{1, 2}}}})), "the draws cannot be read");
  EXPECT_EQ(error(ask("reshape", {{"specs", {{{"shape", 1}}}}})), "the shapes cannot be read");
  EXPECT_EQ(error(ask("reference", {{"plan", {{"nodes", {1}}}}})),
            "the reference's plan cannot be read");
  EXPECT_EQ(error(ask("window", {{"tensor", 0}})), "no such output");
  EXPECT_EQ(error(ask("fetch", {{"tensor", 2}})), "no such tensor");
  EXPECT_EQ(error(ask("disturb", {{"tensor", -1}})), "no such tensor");
  EXPECT_TRUE(ok(draw())) << "it still serves";
}

TEST_F(Judges, SayWhoIsAtFault) {
  fake::set_memory(10u << 20);
  EXPECT_EQ(rule(open()), "memory");
  fake::set_memory(8ull << 30);
  ASSERT_TRUE(ok(open()));
  ASSERT_TRUE(ok(draw()));
  fake::fail("MemcpyDtoH", CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(rule(ask("broken")), "none");
  const Json crashed = reference("crash");
  EXPECT_EQ(rule(crashed), "reference");
  EXPECT_TRUE(contains(error(crashed), "ILLEGAL_ADDRESS")) << crashed;
  EXPECT_TRUE(contains(JsonReader(crashed).text("next"), "reference.cu")) << crashed;
  EXPECT_EQ(rule(ask("broken")), "none") << "nothing works in a broken context";
}

TEST_F(Judges, GiveMemoryBackWithTheCase) {
  ASSERT_TRUE(ok(ask("hello")));
  const std::string before = fake::alive();
  ASSERT_TRUE(ok(open(4)));
  const std::string opened = fake::alive();
  EXPECT_NE(opened, before);
  ASSERT_TRUE(ok(open(4))) << "the same name again";
  EXPECT_EQ(fake::alive(), opened);
  ASSERT_TRUE(ok(ask("close")));
  EXPECT_EQ(fake::alive(), before);
  EXPECT_EQ(error(ask("close")), "no such case or set");
}

TEST_F(Judges, SurviveEveryFailureOfARound) {
  for (const char* name : {"poison", "poison_range"}) fake::define(name, {{8, 8, 8}});
  ASSERT_TRUE(ok(open(1)));
  const auto round = [&] {
    bool all = ok(draw()) && ok(reference()) && ok(ask("seal", {{"typical", true}}));
    all = all && ok(ask("poison", {{"keys", {{0, 4}}}, {"slack", true}}));
    all = all && ok(ask("verify", {{"sets", {0}}, {"intrusions", true}}));
    return all && ok(ask("vary", {{"key", key_to_text(key_of(3))}})) && ok(ask("admit")) &&
           ok(ask("narrow")) && ok(ask("deviations"));
  };
  ASSERT_TRUE(round());
  const std::uint64_t before = fake::calls();
  ASSERT_TRUE(round());
  const std::uint64_t count = fake::calls() - before;
  const std::string alive = fake::alive();
  for (std::uint64_t i = 0; i < count; ++i) {
    fake::fail_call(i, CUDA_ERROR_OUT_OF_MEMORY);
    static_cast<void>(round());
    ASSERT_TRUE(round()) << "after " << fake::failed();
    ASSERT_EQ(fake::alive(), alive) << "after " << fake::failed();
  }
}

}  // namespace
}  // namespace kernelpro::testing

#endif
