// SPDX-License-Identifier: Apache-2.0
#include "profile/places/definitions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

namespace kernelpro {
namespace {

constexpr const char* kSource = R"(#define COPIES 2
constexpr int kColumns = 32;
constexpr int kPitch = kColumns;  // no padding
constexpr int kFar = 7;
__device__ inline int slot(int row, int column) { return row * kPitch + column; }
__device__ float longer(float x) {
  x = x + 1;
  x = x * 2;
  x = x + 1;
  x = x * 2;
  return x;
}
__global__ void gather(const float* in, float* out, int n) {
  __shared__ float tile[kPitch * COPIES];
  const int first = threadIdx.x, last = n / sizeof(float4);
  float* mine = tile + threadIdx.x * kPitch;
  for (int i = first; i < last; ++i) {
    out[i] = longer(mine[i]);
    n = 3;
  }
  out[slot(first, 0)] = 1;
}
)";

using Found = std::vector<std::pair<std::string, int>>;

Found at(std::vector<int> lines) {
  Found found;
  for (const SourceSite& site : definition_sites("a.cu", kSource, lines)) {
    EXPECT_EQ(site.line.file, "a.cu");
    EXPECT_FALSE(site.line.text.empty());
    found.emplace_back(site.name, site.line.line);
  }
  return found;
}

TEST(Definitions, OfNamesAndOfWhatTheyAreMadeOf) {
  EXPECT_EQ(at({21}), (Found{{"kColumns", 2}, {"kPitch", 3}, {"slot", 5}, {"first", 15}}));
  EXPECT_EQ(at({16}), (Found{{"kColumns", 2}, {"kPitch", 3}, {"mine", 16}}));
  // A long function is no definition to look at.
  EXPECT_EQ(at({18}),
            (Found{{"kColumns", 2}, {"kPitch", 3}, {"first", 15}, {"mine", 16}, {"i", 17}}));
  EXPECT_EQ(at({14}), (Found{{"COPIES", 1}, {"kColumns", 2}, {"kPitch", 3}}));
  EXPECT_EQ(at({}), Found());
  EXPECT_EQ(at({1000}), Found());
}

TEST(Definitions, KindsAndEnds) {
  for (const SourceSite& site : definition_sites("a.cu", kSource, {14, 18, 21})) {
    const bool variable =
        site.name == "mine" || site.name == "i" || site.name == "first" || site.name == "last";
    EXPECT_EQ(site.kind, variable ? SiteKind::kVariable : SiteKind::kDefinition) << site.name;
    EXPECT_EQ(site.last, site.line.line) << site.name;
  }
}

TEST(Definitions, TheLastBeforeTheUse) {
  const char* twice =
      "void a() { const int w = 1; use(w); }\nvoid b() {\n const int w = 2;\n"
      " use(w);\n}\nvoid c() {\n const int w = 3;\n}\n";
  const auto found = definition_sites("a.cu", twice, {4});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].line.line, 3);
}

TEST(Definitions, AnyTextIsSafe) {
  for (const char* text :
       {"", "x =", "= x", "int x = ", "f(", "int f(", "int f() {", "int f() { return", "#define",
        "#define A \\", "a, b = (", "constexpr int a = a, b = b;"}) {
    definition_sites("a.cu", text, {0, 1, 2, -5});
  }
}

constexpr const char* kTemplates = R"(template <int Rows, int Stages>
struct Ring {
  static constexpr int kStages = Stages;
  static constexpr int kBytes = Rows * 128;
};
constexpr int kPerTicket = 1;
template <int Grain>
__device__ int take(int* next) {
  return atomicAdd(next, Grain);
}
template <class C, int Grain>
__global__ void __launch_bounds__(128) scan(int* next, float* out) {
  __shared__ float ring[C::kStages * C::kBytes];
  out[take<Grain>(next)] = ring[threadIdx.x];
}
using Hot = Ring<32, 2>;
using Cold = Ring<32,
                  8>;
const float* book{kBook};
void run(int* next, float* out) { scan<Hot, kPerTicket><<<132, 128>>>(next, out); }
)";

Found in_templates(std::vector<int> lines) {
  Found found;
  for (const SourceSite& site : definition_sites("a.cu", kTemplates, lines)) {
    found.emplace_back(site.name, site.line.line);
  }
  return found;
}

TEST(Definitions, ATemplatesParameterIsDefinedWhereItIsChosen) {
  // Through the constant that passes it on, for both rings.
  EXPECT_EQ(in_templates({3}),
            (Found{{"kStages", 16}, {"Stages", 16}, {"kStages", 18}, {"Stages", 18}}));
  // Through the template that passes it on, and the constant that is its argument.
  EXPECT_EQ(in_templates({9}), (Found{{"Grain", 6}}));
  // Of two that are multiplied, the line that names them stays.
  const Found bytes = in_templates({4});
  EXPECT_NE(std::find(bytes.begin(), bytes.end(), Found::value_type{"kBytes", 4}), bytes.end());
  EXPECT_NE(std::find(bytes.begin(), bytes.end(), Found::value_type{"Rows", 16}), bytes.end());
  EXPECT_EQ(in_templates({19}), (Found{{"book", 19}}));
}

TEST(Definitions, SitesFollowThem) {
  const std::vector<SourceSite> sites =
      followed(kTemplates, {{SiteKind::kDepth, {"a.cu", 3, ""}, 3, "kStages"},
                            {SiteKind::kLaunch, {"a.cu", 20, ""}, 20, ""}});
  ASSERT_EQ(sites.size(), 3u);
  EXPECT_EQ(sites[0].line.line, 16);
  EXPECT_EQ(sites[0].line.text, "using Hot = Ring<32, 2>;");
  EXPECT_EQ(sites[1].line.line, 18);
  EXPECT_EQ(sites[2].kind, SiteKind::kLaunch);
}

TEST(Definitions, ADefaultIsChosenWhereNothingElseIs) {
  const char* source =
      "template <int Rows, int Stages = 4>\nstruct Ring { float a[Stages]; };\n"
      "using One = Ring<32>;\nusing Two = Ring<64, 2>;\n";
  std::vector<int> at;
  for (const SourceSite& site : definition_sites("a.cu", source, {2})) {
    if (site.name == "Stages") at.push_back(site.line.line);
  }
  EXPECT_EQ(at, (std::vector{1, 4}));
}

// Templates that name each other, and lists that never end.
TEST(Definitions, AnyTextEndsSoon) {
  std::string each_other = "template <int T> struct A {\n";
  for (int i = 0; i < 16; ++i) each_other += "B<T> b" + std::to_string(i) + ";\n";
  each_other += "};\ntemplate <int T> struct B {\n";
  for (int i = 0; i < 16; ++i) each_other += "A<T> a" + std::to_string(i) + ";\n";
  each_other += "};\n";
  std::string open;
  for (int i = 0; i < 200; ++i) open += "template <int T> struct A { int t; };\n";
  for (int i = 0; i < 20'000; ++i) open += "A <\n";
  for (const std::string& text : {each_other, open}) {
    std::vector<int> lines;
    for (int line = 1; line <= 40; ++line) lines.push_back(line);
    const double begin = static_cast<double>(std::clock());
    definition_sites("a.cu", text, lines);
    EXPECT_LT((static_cast<double>(std::clock()) - begin) / CLOCKS_PER_SEC, 2);
  }
}

}  // namespace
}  // namespace kernelpro
